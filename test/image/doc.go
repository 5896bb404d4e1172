// Package image tests EKCO's container image, with the archives that deploy/image/build.sh creates. It reads their
// content without the code that wrote them, and imports them into containerd.
package image
