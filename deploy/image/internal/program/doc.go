// Package program builds EKCO for an architecture and lists the modules that are linked into it.
package program
