package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// TestAnOperatorThatAnswersAndTellsNothingIsAskedOnceASecondAndNotForEver: it would take all
// that the pod may compute, and fill what standard error goes to.
func TestAnOperatorThatAnswersAndTellsNothingIsAskedOnceASecondAndNotForEver(t *testing.T) {
	lost := errors.New("its disk is broken")
	synctest.Test(t, func(t *testing.T) {
		var again reconnectLimit
		dials, began := 0, time.Now()
		answers := func(context.Context) (operator, error) { dials++; return &fakeOperator{}, nil }
		var err error
		for err == nil {
			_, err = again.await(t.Context(), 7, lost, answers)
		}
		if took := time.Since(began); !errors.Is(err, lost) || took != returnTimeout || dials != 121 {
			t.Errorf("after %s and %d tries: %v", took, dials, err)
		}
	})
}

// TestWhatComesOfAnOperatorThatIsReachedAgainIsPatienceForTheNext: whether it tells something,
// or only stays.
func TestWhatComesOfAnOperatorThatIsReachedAgainIsPatienceForTheNext(t *testing.T) {
	for name, comes := range map[string]bool{"it tells something": true, "it stays": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var again reconnectLimit
				come := uint64(0)
				answers := func(context.Context) (operator, error) { return &fakeOperator{}, nil }
				for range 200 {
					if comes {
						come++
					} else {
						time.Sleep(minWorkingStream)
					}
					began := time.Now()
					if _, err := again.await(t.Context(), come, errors.New("gone"), answers); err != nil || time.Since(began) > 0 {
						t.Fatalf("after %s: %v", time.Since(began), err)
					}
				}
			})
		})
	}
}

// TestACommandThatIsToldNothingDoesNotSpin: whichever follows what happens.
func TestACommandThatIsToldNothingDoesNotSpin(t *testing.T) {
	reports := func(t *testing.T) operator {
		o := newReportingOperator(t, "a")
		o.silent["a"], o.quits = true, 1
		return o
	}
	purges := func(t *testing.T) operator {
		o := purging(t, journal.OutcomeDone)
		o.live, o.lost = o.live[:4], true
		return o
	}
	for args, running := range map[string]func(*testing.T) operator{"node-report": reports, "purge-node worker-2": purges, "history --follow": purges} {
		t.Run(args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, answering, dials := newDesk(t, nil), running(t), 0
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				d.app.dial = func(context.Context, string, string) (operator, error) {
					if dials++; dials == 2 {
						time.AfterFunc(10*time.Second, stop)
					}
					return answering, nil
				}
				d.typesUntil(ctx, strings.Fields(args)...)
				if dials < 3 || dials > 13 {
					t.Errorf("the operator was reached %d times within 10 s", dials)
				}
			})
		})
	}
}

// TestAReportThatCannotBeRecordedIsMissing: a full disk is no reason to look for an operator.
func TestAReportThatCannotBeRecordedIsMissing(t *testing.T) {
	o := newReportingOperator(t, "a", "b")
	o.refused["a"] = &journal.UnwritableError{Cause: errors.New("no space left on device")}
	d := reportDesk(t, o)
	d.expect(d.types("node-report", "-o", "json"), exitFailed, "", "")
	if of := reportsOf(t, d); !of["b"].Looked || len(of["a"].Missing) != 1 || !strings.Contains(of["a"].Missing[0].Why, "no space left on device") || d.errOut.Len() > 0 {
		t.Errorf("it says %+v; %s", of["a"].Missing, d.errOut)
	}
}
