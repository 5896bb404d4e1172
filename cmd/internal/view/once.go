package view

import "strings"

// Once shortens what is said again: the long cause of one trouble is often the
// reason for several. The zero value has said nothing. It is to be used by one
// goroutine at a time.
type Once struct{ causes []string }

const (
	// longCause is how many bytes are worth leaving out.
	longCause = 80
	// mostCauses bounds what is remembered.
	mostCauses = 64
	asBefore   = "(as said above)"
)

// Shorten returns the text with what was said before left out. A cause begins after
// a colon and ends with the text in which it was said first.
func (o *Once) Shorten(text string) string {
	longest := ""
	for _, cause := range o.causes {
		if len(cause) > len(longest) && strings.Contains(text, cause) {
			longest = cause
		}
	}
	if longest != "" {
		return strings.Replace(text, longest, asBefore, 1)
	}
	_, cause, found := strings.Cut(text, ": ")
	for found && len(cause) >= longCause && len(o.causes) < mostCauses {
		o.causes = append(o.causes, cause)
		_, cause, found = strings.Cut(cause, ": ")
	}
	return text
}
