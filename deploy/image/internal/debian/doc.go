// Package debian reads the metadata of Debian packages.
package debian
