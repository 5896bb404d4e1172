package view

import (
	"regexp"
	"strings"
)

// Once shortens repeated texts: the long cause of one problem is often the reason for several. The zero value is
// ready for use, by one goroutine at a time.
type Once struct{ said []string }

const (
	// longCause is the shortest text, in bytes, that is left out when it repeats.
	longCause = 80
	// maxSaid is how many texts it remembers.
	maxSaid  = 64
	asBefore = "(see above)"
)

// Shorten returns the text without the longest part that is also the end of an earlier text.
func (o *Once) Shorten(text string) string {
	longest := ""
	bare := withoutCheck(text)
	for _, before := range o.said {
		if end := endIn(bare, before, len(longest)); end != "" {
			longest = end
		}
	}
	if longest != "" {
		return strings.Replace(text, longest, asBefore, 1)
	}
	if len(text) >= longCause && len(o.said) < maxSaid {
		o.said = append(o.said, bare)
	}
	return text
}

// withoutCheck removes the name of a preflight at the end, which may differ for the same cause.
func withoutCheck(text string) string { return checkAtEnd.ReplaceAllString(text, "") }

// checkAtEnd matches what [words.Held] adds.
var checkAtEnd = regexp.MustCompile(` \([A-Z][A-Za-z]+\)$`)

// endIn returns the longest part after a colon at the end of the text before that the text also contains, or "" if it
// is shorter than longCause or not longer than than.
func endIn(text, before string, than int) string {
	for end := before; len(end) >= longCause && len(end) > than; {
		if end != text && strings.Contains(text, end) {
			return end
		}
		_, rest, found := strings.Cut(end, ": ")
		if !found {
			return ""
		}
		end = rest
	}
	return ""
}
