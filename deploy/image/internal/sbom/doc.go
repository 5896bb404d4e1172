// Package sbom writes the list of what is in an image, as SPDX 2.3 in JSON: EKCO,
// the Go modules linked into it, and Debian's packages.
package sbom
