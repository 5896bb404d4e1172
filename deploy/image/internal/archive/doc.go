// Package archive creates an image from layers, and a file that containerd can import: an OCI layout in a tar archive.
package archive
