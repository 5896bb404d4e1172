package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/observers"
)

func TestACallIsLoggedWithItsErrorOnlyIfItHasOne(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	calls := measureCalls(api.NewMetrics(), log)
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, `msg="asked ceph" call="osd tree" took=2s` + "\n"},
		{errors.New("no"), `msg="asked ceph" call="osd tree" took=2s error=no` + "\n"},
	} {
		logged.Reset()
		calls.ceph("osd tree", 2*time.Second, test.err)
		if !strings.HasSuffix(logged.String(), test.want) {
			t.Errorf("logged %q, want %q", logged.String(), test.want)
		}
	}
}

// TestCephIsNotAskedTheSameTwiceInARow: how an answer does for both is the client's own test.
func TestCephIsNotAskedTheSameTwiceInARow(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		options := cephOptions(readOnly, externalCalls{})
		if age := options.MaxAge; age < 100*time.Millisecond || age > time.Second {
			t.Errorf("an answer of Ceph does for %s: want it to last from a check to its step, and no longer", age)
		}
		if options.ReadOnly != readOnly {
			t.Errorf("read-only is %v, want %v", options.ReadOnly, readOnly)
		}
	}
}

// looking counts how often it shall look.
type looking struct {
	observers.Source
	looks atomic.Int64
}

func (l *looking) Look() { l.looks.Add(1) }

func TestCephsHostsAreCountedWhenEKCOHasRemovedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, told, nudge := &looking{}, 0, &observers.Nudge{}
		nudge.Over(source)
		calls := triggerHosts(nudge, func(string, time.Duration, error) { told++ })
		for _, test := range []struct {
			kind  string
			err   error
			looks int64
		}{{"osd tree", nil, 0}, {"osd crush rule", nil, 0}, {"osd crush rm", errors.New("no"), 0}, {"osd crush rm", nil, 1}} {
			before := source.looks.Load()
			calls(test.kind, time.Second, test.err)
			synctest.Wait()
			if source.looks.Load() != before {
				t.Errorf("after %s (%v) somebody looked at once, in the way of the purge's own look", test.kind, test.err)
			}
			time.Sleep(hostTriggerDelay)
			if synctest.Wait(); source.looks.Load() != test.looks {
				t.Errorf("after %s (%v) somebody looked %d times", test.kind, test.err, source.looks.Load())
			}
		}
		if told != 4 {
			t.Errorf("%d of 4 calls were counted", told)
		}
	})
}
