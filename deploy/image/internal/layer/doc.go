// Package layer has the files of an image layer, and writes them reproducibly: the same files give the same bytes.
package layer
