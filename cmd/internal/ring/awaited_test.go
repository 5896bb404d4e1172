package ring

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// afterAnEarlierOne is a journal in which an operator has seen the cluster and
// stopped an hour ago, when the API went away.
func afterAnEarlierOne(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	in := w.start(nil)
	pass(time.Hour)
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	w.cluster.Outage(true)
	pass(time.Hour)
	return w
}

func status(t *testing.T, in *incarnation) api.Status {
	t.Helper()
	status, err := in.Backend(nil).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestAnOperatorStartedDuringAnAPIOutageShowsOldNewsAsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := afterAnEarlierOne(t)
		stopped, began := time.Now().Add(-time.Hour), time.Now()
		in := w.start(nil)
		pass(time.Minute)

		got := status(t, in)
		if got.Starting == nil || got.Starting.To != "read the identity of the cluster" || !got.Starting.Since.Equal(began) {
			t.Errorf("does not say how far the start has come: %+v", got.Starting)
		}
		if !got.API.LostAt.Equal(began) || !strings.Contains(got.API.Error, "unavailable") {
			t.Errorf("says nothing of the API: %+v", got.API)
		}
		if !got.AsOf.Equal(stopped) {
			t.Errorf("the nodes are of %s, want %s", got.AsOf, stopped)
		}
		if !got.Operator.StartedAt.Equal(began) || got.Operator.PID != 1 || !got.Operator.Running {
			t.Errorf("tells of another process: %+v", got.Operator)
		}
		if reasons := in.Unready(t.Context()); len(reasons) != 1 || !strings.Contains(reasons[0], "because the Kubernetes API has not answered since") {
			t.Errorf("/readyz says %q", reasons)
		}

		w.cluster.Outage(false)
		pass(time.Minute)
		if got := status(t, in); got.Starting != nil || !got.AsOf.IsZero() || !got.API.LostAt.IsZero() {
			t.Errorf("still speaks of the start: %+v", got)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutageThatAnEarlierOperatorSawIsNotTakenForThePresentOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.start(nil)
		pass(time.Minute)
		lost := time.Now()
		w.tell(journal.ClusterSubject, journal.TypeAPILost, journal.APILost{Error: "an old error"})
		pass(time.Minute)
		if got := status(t, in); !got.AsOf.Equal(lost) || got.API.Error != "an old error" {
			t.Errorf("while the API does not answer, the nodes are of %s (%s), want %s", got.AsOf, got.API.Error, lost)
		}
		in.life.kill()
		t.Logf("the first one ended: %v", <-in.ended)
		w.cluster.Outage(true)
		pass(time.Minute)
		began := time.Now()
		in = w.start(nil)
		pass(time.Second)
		got := status(t, in)
		if !got.API.LostAt.Equal(began) || strings.Contains(got.API.Error, "old") {
			t.Errorf("the API does not answer since %s: %s; want %s", got.API.LostAt, got.API.Error, began)
		}
		if !got.AsOf.Equal(lost) {
			t.Errorf("the nodes are of %s, want %s", got.AsOf, lost)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		w.cluster.Outage(false)
		w.cluster.SetLatency(time.Minute)
		in = w.start(nil)
		pass(time.Second)
		if got := status(t, in); !got.API.LostAt.IsZero() || !got.AsOf.Equal(lost) {
			t.Errorf("before the API was asked: %+v, the nodes are of %s", got.API, got.AsOf)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPurgeThatCannotBePlannedForWantOfTheAPISaysThat(t *testing.T) {
	for _, test := range []struct{ onlyNode, want string }{
		{"", "the operator has not seen the cluster since it started at "},
		{"worker-2", "no operator runs, and this command cannot see the cluster, because the Kubernetes API has not answered since "},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := afterAnEarlierOne(t)
			w.onlyNode = test.onlyNode
			in := w.start(nil)
			_, requestErr := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
			_, explainErr := in.Backend(nil).Explain(t.Context(), askPurge("worker-2"))
			for _, err := range []error{requestErr, explainErr} {
				if err == nil || !errors.Is(err, api.ErrRefused) || !strings.HasPrefix(err.Error(), test.want) || !strings.Contains(err.Error(), "unavailable") {
					t.Errorf("got %v, want %s", err, test.want)
				}
				for _, riddle := range []string{"caught up", "log", "refused"} {
					if err != nil && strings.Contains(err.Error(), riddle) {
						t.Errorf("says %q: %v", riddle, err)
					}
				}
			}
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnUnknownNodeIsNotCalledUnknownToAClusterThatWasNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := afterAnEarlierOne(t)
		in := w.start(nil)
		pass(time.Minute)
		err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Name: "worker-9", Reason: "r"})
		if !errors.Is(err, api.ErrNotFound) || !strings.Contains(err.Error(), "EKCO cannot see whether it has joined: the operator has not seen the cluster since") ||
			strings.Contains(err.Error(), "neither the cluster") {
			t.Errorf("got %v", err)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAProcessThatNeverSawTheClusterLeavesNoWordOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := afterAnEarlierOne(t)
		before := w.state().Seq
		in := w.start(nil)
		pass(time.Minute)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		if events := w.events(journal.Query{After: before}); len(events) != 0 {
			t.Errorf("it recorded %+v", events)
		}
	})
}

func TestACommandThatWorksWithoutAnOperatorSaysSoOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.onlyNode, w.worksFor = "worker-2", "purge-node worker-2"
		in := w.start(nil)
		pass(time.Minute)
		got := status(t, in)
		if got.Operator.Running || got.Operator.PID != 1 || got.Operator.Command != "purge-node worker-2" || !got.AsOf.IsZero() {
			t.Errorf("got %+v, as of %s", got.Operator, got.AsOf)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		if got := w.state().Operator; got.Command != "purge-node worker-2" {
			t.Errorf("the journal says %+v", got)
		}
	})
}
