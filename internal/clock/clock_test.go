package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hands are two clocks that a test moves by themselves.
type hands struct {
	wall   time.Time
	passed time.Duration
}

func (h *hands) source(boot string) Source {
	return Source{Wall: func() time.Time { return h.wall }, Passed: func() time.Duration { return h.passed }, Boot: boot}
}

func (h *hands) pass(d time.Duration) { h.wall, h.passed = h.wall.Add(d), h.passed+d }

func wantNow(t *testing.T, c *Clock, want time.Time, drift time.Duration) {
	t.Helper()
	if got := c.Now(); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("it is %s, want %s", got, want)
	}
	if got := c.Drift(); got != drift {
		t.Errorf("the machine's clock is %s ahead, want %s", got, drift)
	}
}

func TestAClockCountsWhatPassesAndIsMovedOnlyByItsOwner(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		h := &hands{wall: noon.In(time.FixedZone("", 3600)), passed: time.Hour}
		c := New(h.source(""))
		wantNow(t, c, noon, 0)
		h.pass(time.Minute)
		wantNow(t, c, noon.Add(time.Minute), 0)
		h.wall = h.wall.Add(by)
		wantNow(t, c, noon.Add(time.Minute), by)
		c.Move(by)
		wantNow(t, c, noon.Add(time.Minute+by), 0)
	}
}

func TestAMachineThatSleptIsAheadOfItsMonotonicClock(t *testing.T) {
	h := &hands{wall: noon}
	c := New(h.source(""))
	h.wall = h.wall.Add(time.Hour)
	wantNow(t, c, noon, time.Hour)
}

func TestAClockGoesOnFromTheOneBeforeOnlyInTheSameBoot(t *testing.T) {
	for name, test := range map[string]struct {
		before, now string
		goesOn      bool
	}{
		"the same boot":            {"a", "a", true},
		"another boot":             {"a", "b", false},
		"nobody knows which":       {"", "", false},
		"the former is not known":  {"", "b", false},
		"the present is not known": {"a", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hands{wall: noon, passed: time.Hour}
			boot, up := New(h.source(test.before)).Uptime()
			if boot != test.before || up != time.Hour {
				t.Errorf("up %s in boot %q", up, boot)
			}
			zero := noon.Add(-up)
			h.wall, h.passed = noon.Add(3*time.Hour), h.passed+time.Minute
			c := New(h.source(test.now))
			c.Continue(test.before, zero)
			if test.goesOn {
				wantNow(t, c, noon.Add(time.Minute), 179*time.Minute)
			} else {
				wantNow(t, c, noon.Add(3*time.Hour), 0)
			}
		})
	}
}

func TestTheMachineTellsItsBootAndItsClocksAgree(t *testing.T) {
	first, second := Machine(), Machine()
	if first.Boot == "" || first.Boot != second.Boot {
		t.Errorf("boots %q and %q, want one", first.Boot, second.Boot)
	}
	before := first.Passed()
	if after := second.Passed(); before <= 0 || after < before || after-before > time.Minute {
		t.Errorf("the monotonic clock shows %s and then %s", before, after)
	}
	if drift := New(first).Drift(); drift.Abs() > time.Second {
		t.Errorf("the machine's clock is %s ahead at once", drift)
	}
}

func TestAProcessCountsItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Process())
		began := c.Now()
		time.Sleep(time.Hour)
		if passed := c.Now().Sub(began); passed != time.Hour || c.Drift() != 0 {
			t.Errorf("%s passed in an hour, drift %s", passed, c.Drift())
		}
		if boot, _ := c.Uptime(); boot != "" {
			t.Errorf("it claims to be of boot %q", boot)
		}
	})
}
