package view

import (
	"regexp"
	"strings"
)

// Once shortens repeated texts, because the long cause of one problem is often the reason for several. The zero value
// is ready for use. Only one goroutine may use it at a time.
type Once struct{ said []string }

const (
	// longCause is the minimum length in bytes of a repeated text that is omitted.
	longCause = 80
	// maxSaid is the maximum number of remembered texts.
	maxSaid  = 64
	asBefore = "(see above)"
)

// Shorten replaces the longest part of the text that is also the end of an earlier text with "(see above)".
func (o *Once) Shorten(text string) string {
	longest := ""
	bare := withoutCheck(text)
	for _, before := range o.said {
		if end := repeatedEnd(bare, before, len(longest)); end != "" {
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

// withoutCheck removes the name of a preflight at the end of the text, because the names may differ for the same cause.
func withoutCheck(text string) string { return checkAtEnd.ReplaceAllString(text, "") }

// checkAtEnd matches the name that [words.Held] adds at the end.
var checkAtEnd = regexp.MustCompile(` \([A-Z][A-Za-z]+\)$`)

// repeatedEnd returns the longest end of before that is also in text. It considers before itself, and what follows each
// colon. It returns "" if that end is shorter than longCause or not longer than limit.
func repeatedEnd(text, before string, limit int) string {
	for end := before; len(end) >= longCause && len(end) > limit; {
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
