package view

import (
	"regexp"
	"strings"
)

// Once shortens what is said again: the long cause of one trouble is often the
// reason for several. The zero value has said nothing. It is to be used by one
// goroutine at a time.
type Once struct{ said []string }

const (
	// longCause is how many bytes are worth leaving out.
	longCause = 80
	// mostSaid bounds how many texts are remembered.
	mostSaid = 64
	asBefore = "(see above)"
)

// Shorten returns the text with the longest end of one before left out that it has too.
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
	if len(text) >= longCause && len(o.said) < mostSaid {
		o.said = append(o.said, bare)
	}
	return text
}

// withoutCheck returns the text without the name of a check that is its last word, which
// differs where the cause before it is the same.
func withoutCheck(text string) string { return checkAtEnd.ReplaceAllString(text, "") }

// checkAtEnd is what [words.Held] adds.
var checkAtEnd = regexp.MustCompile(` \([A-Z][A-Za-z]+\)$`)

// endIn returns the longest cause at the end of the text before, after a colon, that the text has
// too, or "" if there is none that is worth leaving out and longer than that.
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
