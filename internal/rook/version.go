package rook

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is a version of Rook. The zero value means unknown.
type Version struct {
	Known               bool
	Major, Minor, Patch int
}

// String returns the version as Rook writes it, or "unknown".
func (v Version) String() string {
	if !v.Known {
		return "unknown"
	}
	return fmt.Sprintf("v%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// AtLeast reports whether the version is known and at least the given version. It uses only the first three numbers:
// kURL's "v1.0.4-14.2.21" is 1.0.4.
func (v Version) AtLeast(major, minor, patch int) bool {
	if !v.Known {
		return false
	}
	for _, part := range [][2]int{{v.Major, major}, {v.Minor, minor}, {v.Patch, patch}} {
		if part[0] != part[1] {
			return part[0] > part[1]
		}
	}
	return true
}

// semver matches a semantic version with an optional v before it.
var semver = regexp.MustCompile(`^v?(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$`)

// versionOf reads the version from the tag of an image.
func versionOf(image string) (Version, bool) {
	found := semver.FindStringSubmatch(tagOf(image))
	if found == nil {
		return Version{}, false
	}
	version := Version{Known: true}
	for i, number := range []*int{&version.Major, &version.Minor, &version.Patch} {
		// The pattern allows at most nine digits, so there is no overflow.
		*number, _ = strconv.Atoi(found[i+1])
	}
	return version, true
}

// tagOf returns the tag of an image, without registry, port and digest.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}
