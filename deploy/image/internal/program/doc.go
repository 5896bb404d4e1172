// Package program builds EKCO for an architecture and tells what is linked into it.
package program
