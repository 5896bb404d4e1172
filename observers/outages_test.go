package observers

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

func TestAnOutageIsDatedByTheJournalsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newOutages(func() time.Time { return time.Now().Add(3 * time.Hour) })
		lost := time.Now()
		api.begin(lost, "refused")
		<-time.After(time.Minute)
		api.end()
		_, _, after := api.due(time.Now())
		if got := after[0].Payload.(journal.APIRecovered).LostAt; !got.Equal(lost.Add(3 * time.Hour)) {
			t.Errorf("it is on record since %s, want %s", got, lost.Add(3*time.Hour))
		}
	})
}

// outageTest is outages, a clock that stands still, and what is taken but neither
// written nor refused.
type outageTest struct {
	*outages
	t     *testing.T
	began time.Time
	taken Batch
}

// at returns the time so many seconds after the test began.
func (o *outageTest) at(seconds int) time.Time {
	return o.began.Add(time.Duration(seconds) * time.Second)
}

// take checks what is due, and leaves it under way.
func (o *outageTest) take(want ...string) {
	o.t.Helper()
	batch, before, after := o.due(time.Now())
	var got []string
	for _, draft := range slices.Concat(before, after) {
		switch p := draft.Payload.(type) {
		case journal.APILost:
			got = append(got, "lost "+p.Error)
		case journal.APIRecovered:
			got = append(got, "recovered since "+p.LostAt.Sub(o.began).String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		o.t.Fatalf("due (-want +got):\n%s", diff)
	}
	o.taken = batch
}

// wrote checks what is due, and says that it is written.
func (o *outageTest) wrote(want ...string) {
	o.t.Helper()
	o.take(want...)
	o.taken.Written()
}

func withOutages(t *testing.T, test func(*outageTest)) {
	synctest.Test(t, func(t *testing.T) {
		test(&outageTest{outages: newOutages(time.Now), t: t, began: time.Now()})
	})
}

func TestAnOutageThatBeginsWhileTheEndOfTheLastIsWrittenIsAnother(t *testing.T) {
	withOutages(t, func(o *outageTest) {
		o.begin(o.at(1), "first")
		o.end()
		o.take("lost first", "recovered since 1s")
		o.begin(o.at(2), "second")
		o.taken.Written()
		o.wrote("lost second")
		o.end()
		o.wrote("recovered since 2s")
		o.begin(o.at(3), "third")
		o.end()
		o.wrote("lost third", "recovered since 3s")
		o.wrote()
	})
}

func TestAnOutageThatComesAndGoesWhileTheEndOfTheLastIsWrittenIsToldWithItsEnd(t *testing.T) {
	withOutages(t, func(o *outageTest) {
		o.begin(o.at(1), "first")
		o.wrote("lost first")
		o.end()
		o.take("recovered since 1s")
		o.begin(o.at(2), "second")
		o.end()
		o.taken.Written()
		o.wrote("lost second", "recovered since 2s")
	})
}

func TestAnOutageThatBeginsWhileTheEndOfTheLastCannotBeWrittenIsTheSame(t *testing.T) {
	withOutages(t, func(o *outageTest) {
		o.begin(o.at(1), "first")
		o.wrote("lost first")
		o.end()
		o.take("recovered since 1s")
		o.begin(o.at(2), "second")
		o.taken.Refused()
		o.take()
		o.taken.Refused()
		o.end()
		o.wrote("recovered since 1s")
	})
}

func TestOutagesThatFollowOneOnRecordAreOneSinceTheFirstOfThem(t *testing.T) {
	withOutages(t, func(o *outageTest) {
		o.begin(o.at(1), "first")
		o.end()
		o.wrote("lost first", "recovered since 1s")
		o.begin(o.at(2), "second")
		o.end()
		o.begin(o.at(3), "third")
		o.end()
		o.wrote("lost second", "recovered since 2s")
	})
}

func TestOutagesThatFollowOneWhoseEndWasBeingWrittenAreOneSinceTheFirstOfThem(t *testing.T) {
	withOutages(t, func(o *outageTest) {
		o.begin(o.at(1), "first")
		o.end()
		o.take("lost first", "recovered since 1s")
		o.begin(o.at(2), "second")
		o.end()
		o.taken.Written()
		o.begin(o.at(3), "third")
		o.end()
		o.wrote("lost second", "recovered since 2s")
		o.wrote()
	})
}
