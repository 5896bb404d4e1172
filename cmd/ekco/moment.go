package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// momentForms lists the forms that [parseMoment] accepts.
const momentForms = "a duration like 24h, 7d or 1w, a time like 2026-11-21T08:00:00Z, 2026-11-21 08:00 or 08:00, or yesterday"

// parseMoment parses a time, or a duration before now. zone applies to times without a zone. A time without a date
// means the latest such time that is not after now.
func parseMoment(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" || text == "all" {
		return time.Time{}, nil
	}
	if span, err := readSpan(text); err == nil {
		return now.Add(-span), nil
	}
	now = now.In(zone)
	switch text {
	case "today":
		return onDay(now, 0, time.Time{}), nil
	case "yesterday":
		return onDay(now, -1, time.Time{}), nil
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return latestWithClock(at, now), nil
		}
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("%s is %q: want %s", flag, text, momentForms)
}

// localZone returns the time zone of this machine, or of TZ. It returns an error for an unknown zone, because
// time.Local would silently be UTC.
func (a *app) localZone() (*time.Location, error) {
	name, _ := a.env("TZ")
	if name = strings.TrimPrefix(name, ":"); name == "" || filepath.IsAbs(name) {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, usagef("TZ is %q: want a time zone like Europe/Berlin: %w", name, err)
	}
	return zone, nil
}

// latestWithClock returns the latest time with this clock reading that is not after now.
func latestWithClock(clock, now time.Time) time.Time {
	if at := onDay(now, 0, clock); !at.After(now) {
		return at
	}
	return onDay(now, -1, clock)
}

// onDay returns the time with this clock reading on the day that is some days after now. It does not add multiples of
// 24 hours, because a day has 23 or 25 hours when daylight saving time begins or ends.
func onDay(now time.Time, days int, clock time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
}

// spanUnits lists units that Go's durations lack.
var spanUnits = []struct {
	name string
	is   time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}}

// maxSpan is small enough that sums cannot overflow.
const maxSpan = 100 * 365 * 24 * time.Hour

// readSpan parses a duration of zero or more, also in weeks and days: 1w, 2d12h, 90s.
func readSpan(text string) (time.Duration, error) {
	rest, total := text, time.Duration(0)
	for _, unit := range spanUnits {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if fits := n >= 0 && n*float64(unit.is) <= float64(maxSpan); err != nil || !fits { // fits is false for NaN, too
			return 0, fmt.Errorf("%q is not a duration of at most 100 years", text)
		}
		total, rest = total+time.Duration(n*float64(unit.is)), after
	}
	if rest == "" && text != "" {
		return total, nil
	}
	span, err := time.ParseDuration(rest)
	if err != nil || span < 0 || span > maxSpan {
		return 0, fmt.Errorf("%q is not a duration of at most 100 years", text)
	}
	return total + span, nil
}

// spanFlag is a flag whose value is a duration above zero.
type spanFlag struct{ span *time.Duration }

func (f spanFlag) String() string {
	if f.span == nil || *f.span == 0 {
		return ""
	}
	return f.span.String()
}

func (f spanFlag) Type() string { return "duration" }

func (f spanFlag) Set(text string) error {
	span, err := readSpan(text)
	if err != nil || span == 0 {
		return fmt.Errorf("want a duration above zero, like 2h or 1d")
	}
	*f.span = span
	return nil
}
