package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestMomentsAreReadAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"90s": "2026-11-22T02:58:30Z", "24h": "2026-11-21T03:00:00Z", "7d": "2026-11-15T03:00:00Z", "0.5d": "2026-11-21T15:00:00Z",
		"1w": "2026-11-15T03:00:00Z", "1w1d2h": "2026-11-14T01:00:00Z", "1d30m": "2026-11-21T02:30:00Z",
		"today": "2026-11-22T00:00:00Z", "yesterday": "2026-11-21T00:00:00Z",
		"00:09": "2026-11-22T00:09:00Z", "23:59": "2026-11-21T23:59:00Z", "03:00": "2026-11-22T03:00:00Z", "03:00:01": "2026-11-21T03:00:01Z",
		"2026-11-22 00:09": "2026-11-22T00:09:00Z", "2026-11-22T00:09": "2026-11-22T00:09:00Z", "2026-11-22T00:09:30": "2026-11-22T00:09:30Z",
		"2026-11-22 00:09:30": "2026-11-22T00:09:30Z", "2026-11-21": "2026-11-21T00:00:00Z",
		"2026-11-22T01:09:00+01:00": "2026-11-22T00:09:00Z", "2026-11-22T00:09Z": "2026-11-22T00:09:00Z",
	} {
		for _, now := range []time.Time{now, now.In(time.FixedZone("west", -8*60*60))} {
			got, err := parseMoment("--since", text, now, time.UTC)
			if err != nil || got.UTC().Format(time.RFC3339) != want {
				t.Errorf("%s at %s: got %s (%v), want %s", text, now, got.UTC().Format(time.RFC3339), err, want)
			}
		}
	}
	for _, text := range []string{"-1h", "-1d", "1d-1h", "d", "1dw", "1d2w", "25:00", "tomorrow", "NaNd", "Infw", "1e300d", "40000d", "2026-13-01"} {
		if got, err := parseMoment("--since", text, now, time.UTC); err == nil || !strings.Contains(err.Error(), "--since is \""+text+"\": want a duration like") {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
}

func TestMomentsAreReadInTheZoneThatTimesAreShownIn(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// In the night before, the clocks were set back from 03:00 to 02:00.
	now := time.Date(2026, 10, 25, 23, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"today": "2026-10-25T23:00:00Z", "yesterday": "2026-10-24T22:00:00Z", "00:09": "2026-10-25T23:09:00Z", "00:31": "2026-10-24T22:31:00Z",
		"2026-10-24 00:09": "2026-10-23T22:09:00Z", "2026-10-26T00:09": "2026-10-25T23:09:00Z", "2026-10-24": "2026-10-23T22:00:00Z",
		"2026-10-24T00:09Z": "2026-10-24T00:09:00Z", "1h": "2026-10-25T22:30:00Z",
	} {
		if got, err := parseMoment("--since", text, now, berlin); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: got %s (%v), want %s", text, got.UTC().Format(time.RFC3339), err, want)
		}
	}
}

func TestLocalTimesAreReadAndShownInTheZoneOfTZ(t *testing.T) {
	for name, want := range map[string]string{"Europe/Berlin": "Europe/Berlin", ":Asia/Tokyo": "Asia/Tokyo", "": "Local", "/etc/localtime": "Local"} {
		a := &app{env: func(string) (string, bool) { return name, true }}
		if zone, err := a.localZone(); err != nil || zone.String() != want {
			t.Errorf("%q: got %v, %v; want %s", name, zone, err, want)
		}
	}
	a := &app{env: func(string) (string, bool) { return "Nowhere/Land", true }}
	if zone, err := a.localZone(); err == nil || !strings.Contains(err.Error(), `TZ is "Nowhere/Land": want a time zone like Europe/Berlin`) {
		t.Errorf("got %v, %v", zone, err)
	}
}

func FuzzSpansAreNeverNegativeNorOverflow(f *testing.F) {
	for _, text := range []string{"1w", "2d12h", "0.1d", "9999999h", "1e9w", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if span, err := readSpan(text); err == nil && (span < 0 || span > math.MaxInt64/2) {
			t.Errorf("%q is %s", text, span)
		}
	})
}

func TestAPauseTakesDays(t *testing.T) {
	op := &fakeOperator{}
	d := newDesk(t, op)
	d.expect(d.types("pause", "--reason", "new racks", "--for", "1d12h"), exitDone, "paused everything until 2026-11-2", "")
	for _, wrong := range []string{"0s", "-1h", "soon"} {
		d.expect(d.types("pause", "--reason", "r", "--for", wrong), exitUsage, "", "want a duration above zero, like 2h or 1d")
	}
}
