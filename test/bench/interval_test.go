package bench

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// interval is a call that was under way.
type interval struct {
	what         string
	began, ended time.Time
}

// union is how long at least one of the calls was under way between two
// moments: what is parallel counts once.
func union(calls []interval, from, to time.Time) (total time.Duration) {
	sorted := slices.SortedFunc(slices.Values(calls), func(x, y interval) int { return cmp.Compare(x.began.UnixNano(), y.began.UnixNano()) })
	covered := from
	for _, call := range sorted {
		began, ended := call.began, call.ended
		if began.Before(covered) {
			began = covered
		}
		if ended.After(to) {
			ended = to
		}
		if ended.After(began) {
			total += ended.Sub(began)
			covered = ended
		}
	}
	return total
}

// within returns the calls that were under way between two moments.
func within(calls []interval, from, to time.Time) []interval {
	return slices.DeleteFunc(slices.Clone(calls), func(call interval) bool { return call.ended.Before(from) || call.began.After(to) })
}

func TestParallelCallsCountOnce(t *testing.T) {
	start := time.Now()
	call := func(from, to time.Duration) interval { return interval{"", start.Add(from), start.Add(to)} }
	calls := []interval{call(50, 60), call(10, 30), call(20, 25), call(28, 40), call(-10, 5), call(95, 120), call(200, 300)}
	if got, want := union(calls, start, start.Add(100)), time.Duration(5+30+10+5); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if got := len(within(calls, start, start.Add(100))); got != 6 {
		t.Errorf("%d calls are within, want 6", got)
	}
}
