package primaries

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

func TestAClockIsWrongOnlyBeyondTheLimit(t *testing.T) {
	since := time.Now()
	now := since.Add(time.Minute)
	for _, beyond := range []time.Duration{0, time.Second} {
		for read, want := range map[time.Time]time.Duration{now.Add(certificates.Back + beyond): certificates.Back + beyond, since.Add(-certificates.Back - beyond): -certificates.Back - beyond} {
			if beyond == 0 {
				want = 0
			}
			if got := skewOf(read, since, now); got != want {
				t.Errorf("a clock that showed %s is off by %s, want %s", read.Sub(since), got, want)
			}
		}
	}
}
