package ring

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// slowDisk is a journal whose disk takes that long for each append.
type slowDisk struct {
	journal.Store
	takes time.Duration
}

func (d slowDisk) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	<-time.After(d.takes)
	return d.Store.Append(ctx, drafts...)
}

func TestADiskThatDoesNotAnswerIsInTheLog(t *testing.T) {
	for takes, want := range map[time.Duration][]string{
		4 * time.Second: nil,
		7 * time.Second: {`level=WARN msg="the journal's disk does not answer: EKCO does nothing until it does" events=1`, `msg="the journal's disk has answered" after=7s`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			store := &watchedStore{Store: slowDisk{memory.New(), takes}, metrics: noMetrics{}, log: w.logger()}
			began := time.Now()
			_, err := store.Append(t.Context(), journal.Draft{
				Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: Actor, Payload: journal.OperatorStopped{Reason: "r"},
			})
			if err != nil || time.Since(began) != takes {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			said := w.log.String()
			if len(want) == 0 && said != "" {
				t.Errorf("it says %q", said)
			}
			for _, part := range want {
				if !strings.Contains(said, part) {
					t.Errorf("it does not say %q:\n%s", part, said)
				}
			}
		})
	}
}

// appends counts what is told of appends.
type appends struct {
	noMetrics
	done, failed int
}

func (a *appends) Appended(_ int, _ time.Duration, err error) {
	if err != nil {
		a.failed++
		return
	}
	a.done++
}

func TestAnAppendThatWhoeverAskedGaveUpIsNoFailureOfTheDisk(t *testing.T) {
	inner, told := memory.New(), new(appends)
	store := &watchedStore{Store: inner, metrics: told, log: newWorld(t).logger()}
	draft := journal.Draft{
		Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: Actor, Payload: journal.OperatorStopped{Reason: "r"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Append(ctx, draft); err == nil || told.failed != 0 || store.trouble() != nil {
		t.Errorf("given up: %v; counted %+v; remembered %v", err, told, store.trouble())
	}
	inner.Break(syscall.ENOSPC)
	if _, err := store.Append(t.Context(), draft); err == nil || told.failed != 1 || store.trouble() == nil {
		t.Errorf("on a full disk: %v; counted %+v; remembered %v", err, told, store.trouble())
	}
	inner.Break(nil)
	if _, err := store.Append(t.Context(), draft); err != nil || told.done != 1 || told.failed != 1 {
		t.Errorf("with space again: %v; counted %+v", err, told)
	}
}
