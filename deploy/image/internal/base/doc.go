// Package base makes the lower layer of the image from what base.sh unpacked of
// Debian's packages. No script of a package was run, not even for the build's own
// architecture; the little of their effect that is needed is done here.
package base
