package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// momentForms lists the forms that [moment] reads.
const momentForms = "a duration like 24h, 7d or 1w, a time like 2026-11-21T08:00:00Z, 2026-11-21 08:00 or 08:00, or yesterday"

// moment reads a time, or a duration before now. Times without a zone are in the given zone; a time without a date is
// the latest one that is not after now.
func moment(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
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
			return lastOf(at, now), nil
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

// localZone returns the time zone of this machine, or of TZ. An unknown zone is an error: time.Local would silently
// be UTC.
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

// lastOf returns the latest time of this clock that is not after now.
func lastOf(clock, now time.Time) time.Time {
	if at := onDay(now, 0, clock); !at.After(now) {
		return at
	}
	return onDay(now, -1, clock)
}

// onDay returns the time of this clock, some days after now. It is not a multiple of 24 hours: a day has 23 or 25
// hours when daylight saving time begins or ends.
func onDay(now time.Time, days int, clock time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
}

// spanUnits are units that Go's durations lack.
var spanUnits = []struct {
	name string
	is   time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}}

// maxSpan is far below where sums overflow.
const maxSpan = 100 * 365 * 24 * time.Hour

// readSpan reads a duration of zero or more, also in weeks and days: 1w, 2d12h, 90s.
func readSpan(text string) (time.Duration, error) {
	rest, total := text, time.Duration(0)
	for _, unit := range spanUnits {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if fits := n >= 0 && n*float64(unit.is) <= float64(maxSpan); err != nil || !fits { // false for NaN too
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

// Set implements pflag.Value.
func (f spanFlag) Set(text string) error {
	span, err := readSpan(text)
	if err != nil || span == 0 {
		return fmt.Errorf("want a duration above zero, like 2h or 1d")
	}
	*f.span = span
	return nil
}
