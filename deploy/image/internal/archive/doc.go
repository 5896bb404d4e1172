// Package archive makes an image of layers, and the file that containerd imports
// it from: an OCI layout in a tar archive.
package archive
