// Package base creates the lower layer of the image from the Debian packages that base.sh unpacked. Scripts of packages
// do not run, not even for the build's own architecture; this package replaces the effects that the image needs.
package base
