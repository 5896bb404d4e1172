// Package layer holds the files of an image's layer and writes them so that the
// same files are always the same bytes.
package layer
