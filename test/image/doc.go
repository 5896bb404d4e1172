// Package image has the tests of EKCO's container image, on the archives that
// deploy/image/build.sh makes: what is in them, read without the code that made
// them, and what containerd makes of them.
package image
