// Package sbom writes the software bill of materials of an image as SPDX 2.3 in JSON: EKCO, the Go modules linked into
// it, and Debian's packages.
package sbom
