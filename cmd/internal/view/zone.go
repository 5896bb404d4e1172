package view

import (
	"regexp"
	"time"

	"github.com/replicatedhq/ekco/journal/words"
)

// zone is the time zone of the output; the zero value is UTC.
type zone struct{ location *time.Location }

// stamp formats a time with a resolution of a second.
func (z zone) stamp(at time.Time) string {
	if z.location == nil {
		return words.Stamp(at)
	}
	return at.In(z.location).Format(time.RFC3339)
}

// width returns the width of a formatted time.
func (z zone) width() int {
	if z.location == nil {
		return len("2006-01-02T15:04:05Z")
	}
	return len(time.RFC3339)
}

// stamps matches the times that [words.Stamp] writes into a sentence.
var stamps = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// convertTimes converts the times in a sentence to the zone.
func (z zone) convertTimes(text string) string {
	if z.location == nil {
		return text
	}
	return stamps.ReplaceAllStringFunc(text, func(stamp string) string {
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return stamp // not a valid time
		}
		return z.stamp(at)
	})
}
