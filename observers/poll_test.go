package observers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// every is how often lamps are polled.
const every = 10 * time.Minute

// asking runs a test in which a keeper is asked for lamps.
func asking(t *testing.T, k *keeper, known map[string]lamp, test func(*bench)) {
	t.Helper()
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{observers.Poll(observers.Polled[lamp]{
				Name: "lamps", Noun: lamps(known), Ask: k.ask, Interval: every, Timeout: 5 * time.Second,
			})}
		}
	}, test)
}

func burning() *keeper { return &keeper{lamps: map[string]lamp{"desk": {"1", true}}} }

func TestAnUnchangedAnswerIsWrittenOnce(t *testing.T) {
	k := burning()
	asking(t, k, nil, func(b *bench) {
		b.Wrote("node.observed desk 1 burns")
		b.Pass(24 * time.Hour)
		b.Wrote()
		if b.Paper.Tries != 1 {
			b.Errorf("%d calls of Record, want only the first", b.Paper.Tries)
		}
	})
}

func TestAChangedAnswerIsWritten(t *testing.T) {
	k := burning()
	asking(t, k, nil, func(b *bench) {
		b.Paper.Take()
		k.change(func() { k.lamps = map[string]lamp{"desk": {"1", false}, "hall": {"2", true}} })
		b.Pass(every + every/10 + time.Second)
		b.Wrote("node.observed desk 1 dark", "node.observed hall 2 burns")
		k.change(func() { k.lamps = map[string]lamp{"hall": {"22", true}} })
		b.Pass(every + every/10 + time.Second)
		b.Wrote("node.gone hall 2 replaced by uid 22", "node.observed hall 22 burns", "node.gone desk 1 deleted")
	})
}

func TestOnlyTheDifferenceToWhatWasPolledBeforeIsWritten(t *testing.T) {
	k := burning()
	asking(t, k, map[string]lamp{"desk": {"1", true}, "hall": {"2", true}}, func(b *bench) {
		b.Wrote("node.gone hall 2 absent at start")
	})
}

func TestPollsAreSpread(t *testing.T) {
	k := burning()
	asking(t, k, nil, func(b *bench) {
		b.Pass(24 * time.Hour)
		pauses := map[time.Duration]bool{}
		for i := range len(k.asked) - 1 {
			pause := k.asked[i+1].Sub(k.asked[i])
			pauses[pause] = true
			if pause < every-every/10 || pause > every+every/10 {
				b.Errorf("asked after %s, want %s give or take a tenth", pause, every)
			}
		}
		if len(pauses) < 10 {
			b.Errorf("only %d different pauses in a day", len(pauses))
		}
	})
}

func TestAnAnswerThatDoesNotComeIsAFailureThatIsSaidOnce(t *testing.T) {
	for name, fail := range map[string]func(*keeper){
		"no answer":    func(k *keeper) { k.hangs = true },
		"wrong answer": func(k *keeper) { k.err = errors.New("exit status 1") },
	} {
		t.Run(name, func(t *testing.T) {
			k := burning()
			asking(t, k, nil, func(b *bench) {
				b.Paper.Take()
				b.Pass(every / 2)
				k.times()
				k.change(func() { fail(k) })
				b.Look("lamps")
				b.Pass(time.Minute)
				if got := k.times(); got < 4 || got > 8 {
					b.Errorf("asked %d times in the first minute of a failure, want growing pauses", got)
				}
				b.Pass(10 * time.Hour)
				if got := k.times(); got < 50 || got > 140 {
					b.Errorf("asked %d times in ten hours, want about every %s", got, every)
				}
				b.Wrote()
				if got := b.Logged("cannot be read: EKCO retries"); got != 1 {
					b.Errorf("said %d times that lamps cannot be read, want once:\n%s", got, b.Said)
				}
				why := "context deadline exceeded"
				if k.err != nil {
					why = k.err.Error()
				}
				want := []string{"lamps: cannot be read; EKCO retries at least every 10m0s (" + why + ")"}
				if diff := cmp.Diff(want, b.Absent()); diff != "" {
					b.Errorf("Absent (-want +got):\n%s", diff)
				}
				if b.Probes > 0 {
					b.Errorf("%d probes of the Kubernetes API for what is not asked of it", b.Probes)
				}
				k.change(func() { k.err, k.hangs = nil, false })
				k.change(func() { k.lamps["desk"] = lamp{"1", false} })
				b.Pass(every + time.Second)
				b.Wrote("node.observed desk 1 dark")
				if absent := b.Absent(); len(absent) > 0 || b.Logged("can be read again") != 1 {
					b.Errorf("Absent is %q after an answer:\n%s", absent, b.Said)
				}
			})
		})
	}
}

func TestAFailureIsTriedAgainSoon(t *testing.T) {
	k := burning()
	k.err = errors.New("exit status 1")
	asking(t, k, nil, func(b *bench) {
		k.change(func() { k.err = nil })
		b.Pass(time.Second)
		b.Wrote("node.observed desk 1 burns")
	})
}

func TestWhatIsNotThereToBeAskedIsQuietlyAwaited(t *testing.T) {
	forbidden := faults["forbidden"].Err
	for name, absent := range map[string]error{
		"forbidden":     fmt.Errorf("get lamp: %w", forbidden),
		"not found":     faults["not found"].Err,
		"no such thing": fmt.Errorf("no lamp shop: %w", observers.ErrAbsent),
	} {
		t.Run(name, func(t *testing.T) {
			k := burning()
			k.change(func() { k.err = absent })
			asking(t, k, map[string]lamp{"desk": {"1", false}}, func(b *bench) {
				k.times()
				b.Pass(10*every + time.Minute)
				b.Wrote() // that nobody can be asked says nothing of lamps
				if got := k.times(); got < 9 || got > 12 {
					b.Errorf("asked %d times in ten intervals", got)
				}
				if got := b.Logged("cannot be read: EKCO does not observe it"); got != 1 {
					b.Errorf("said %d times that lamps are absent, want once:\n%s", got, b.Said)
				}
				var want []string // what is not there is no news; what EKCO may not see is
				if errors.Is(kube.Sentinel(absent), kube.ErrForbidden) {
					want = []string{fmt.Sprintf("lamps: not observed; EKCO retries every 10m0s (%v)", absent)}
				}
				if diff := cmp.Diff(want, b.Absent()); diff != "" {
					b.Errorf("Absent (-want +got):\n%s", diff)
				}
				k.change(func() { k.err = nil })
				b.Pass(every + every/10)
				b.Wrote("node.observed desk 1 burns")
				if absent := b.Absent(); len(absent) > 0 || b.Logged("can be read now: EKCO observes it from now on") != 1 {
					b.Errorf("Absent is %q when lamps have appeared:\n%s", absent, b.Said)
				}
				k.change(func() { k.err = absent })
				b.Pass(3 * every)
				if diff := cmp.Diff(want, b.Absent()); diff != "" || b.Logged("cannot be read: EKCO does not observe it") != 2 {
					b.Errorf("Absent is %q when lamps have disappeared again:\n%s", b.Absent(), b.Said)
				}
				b.Wrote()
			})
		})
	}
}

func TestWhatFailsAndIsThenRefusedIsNoLongerListedAsFailing(t *testing.T) {
	for name, then := range map[string]struct {
		err  error
		want []string
	}{
		"absent":    {observers.ErrAbsent, nil},
		"forbidden": {kube.ErrForbidden, []string{"lamps: not observed; EKCO retries every 10m0s (forbidden)"}},
		"forbidden, and it is known which permission": {
			fmt.Errorf("read lamps: %w", kube.NamePermission(fmt.Errorf("%w: 300 characters", kube.ErrForbidden), "get", "lamps")),
			[]string{"lamps: not observed; EKCO retries every 10m0s (EKCO's service account lacks the permission to get lamps)"},
		},
		"the API is away": {
			fmt.Errorf("get lamps: %w: dial tcp and 300 characters", kube.ErrUnavailable),
			[]string{"lamps: cannot be read; EKCO retries at least every 10m0s (the Kubernetes API is unavailable)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := burning()
			k.err = errors.New("exit status 1")
			asking(t, k, nil, func(b *bench) {
				if absent := b.Absent(); len(absent) != 1 {
					b.Errorf("Absent is %q while it fails", absent)
				}
				k.change(func() { k.err = then.err })
				b.Pass(every)
				if diff := cmp.Diff(then.want, b.Absent()); diff != "" {
					b.Errorf("Absent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestPolledFactsWaitForAJournalThatCannotBeWrittenAndTheNewestWins(t *testing.T) {
	k := burning()
	asking(t, k, nil, func(b *bench) {
		b.Paper.Take()
		b.Paper.BreakWith(errors.New("disk full"))
		k.change(func() { k.lamps["desk"] = lamp{"1", false} })
		k.change(func() { k.lamps["hall"] = lamp{"2", true} })
		b.Look("lamps")
		b.Pass(time.Minute)
		k.change(func() { k.lamps["desk"] = lamp{"1", true} })
		b.Look("lamps")
		b.Pass(time.Minute)
		b.Wrote()
		if got := b.Logged("cannot write facts to the journal"); got != 1 {
			b.Errorf("said %d times that facts cannot be written, want once", got)
		}
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote("node.observed hall 2 burns")
	})
}

func TestALookThatIsAskedForDuringAnotherFollowsIt(t *testing.T) {
	k := burning()
	asking(t, k, nil, func(b *bench) {
		b.Paper.Take()
		k.times()
		k.change(func() { k.takes = 2 * time.Second })
		b.Look("lamps")
		b.Pass(time.Second)
		k.change(func() { k.lamps["desk"] = lamp{"1", false} }) // too late for the answer under way
		b.Look("lamps")
		b.Look("lamps")
		b.Pass(1500 * time.Millisecond)
		b.Wrote()
		b.Pass(2 * time.Second)
		b.Wrote("node.observed desk 1 dark")
		if got := k.times(); got != 2 {
			b.Errorf("asked %d times, want twice", got)
		}
	})
}

func TestStoppingDoesNotWaitForAnAnswer(t *testing.T) {
	k := burning()
	k.hangs = true
	asking(t, k, nil, func(b *bench) {
		began := time.Now()
		b.Stop()
		if took := time.Since(began); took > 0 {
			b.Errorf("stopping took %s", took)
		}
		if b.Said.String() != "" {
			b.Errorf("said:\n%s", b.Said)
		}
	})
}

// getDesk polls one object of which only "get" is granted.
func getDesk(b *bench) observers.Source {
	return observers.Poll(observers.Polled[lamp]{
		Name: "desk lamps", Noun: lamps(nil), OfAPI: true, Interval: every,
		Ask: func(ctx context.Context) (map[string]lamp, error) {
			got, err := b.Get(ctx, "configmaps", "desk")
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			o := got.(*corev1.ConfigMap)
			return map[string]lamp{"desk": {string(o.UID), o.Data["burns"] == "yes"}}, nil
		},
	})
}

func TestAnOutageEndsOnlyWhenWhatIsPolledOfTheAPIWasAskedAnew(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return append(b.Everything(), getDesk(b)) }
		b.Put(node("a", "1"), lampObject("desk", "2", "yes"))
	}, func(b *bench) {
		b.Wrote("node.observed a 1 worker", "node.observed desk 2 burns")
		b.Fall(observerstest.ErrRefused)
		b.Pass(10 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		b.Remove(lampObject("desk", "2", "yes"))
		b.Rise()
		b.Pass(7 * time.Second) // long before the next poll
		b.Wrote("node.gone desk 2 deleted", "api.recovered lost at 00:00:00")
	})
}

func TestAPollOfTheAPIWithoutAnAnswerLeadsToAProbeAndIsNoOutage(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return append(b.Everything(), getDesk(b)) }
		b.Put(node("a", "1"), lampObject("desk", "2", "yes"))
	}, func(b *bench) {
		b.Paper.Take()
		b.Set(func() { b.Failing["get configmaps"] = observerstest.ErrRefused })
		b.Pass(time.Hour)
		b.Wrote()
		if !b.Synced() || b.Probes == 0 || b.Probes > 130 {
			b.Errorf("synced %t, %d probes in an hour in which only lamps fail", b.Synced(), b.Probes)
		}
		b.Fall(observerstest.ErrRefused)
		b.Pass(10 * time.Second)
		b.Rise()
		b.ReadyAfter(soon) // what still fails does not hold up the others
		b.Set(func() { clear(b.Failing) })
		b.Pass(every)
		b.Set(func() { b.Probes = 0 })
		b.Pass(time.Hour)
		if b.Probes > 0 {
			b.Errorf("%d probes at rest", b.Probes)
		}
	})
}

func TestAnAnswerFromBeforeAnOutageDoesNotEndIt(t *testing.T) {
	t.Run("it comes before the API answers again", func(t *testing.T) { answerFromBefore(t, 10*time.Second) })
	t.Run("it is still under way then", func(t *testing.T) { answerFromBefore(t, 50*time.Second) })
}

// answerFromBefore has an outage begin while a question is under way.
func answerFromBefore(t *testing.T, takes time.Duration) {
	k := burning()
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return append(b.Everything(), observers.Poll(observers.Polled[lamp]{
				Name: "lamps", Noun: lamps(nil), Ask: k.ask, Interval: every, Timeout: time.Minute, OfAPI: true,
			}))
		}
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Paper.Take()
		k.change(func() { k.takes = takes })
		b.Look("lamps")
		synctest.Wait()
		b.Fall(observerstest.ErrRefused)
		b.Pass(8 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		k.change(func() { k.lamps["desk"], k.takes = lamp{"1", false}, 0 })
		b.Rise()
		b.Pass(20 * time.Second)
		b.Wrote("node.observed desk 1 dark", "api.recovered lost at 00:00:00")
		if got := b.Logged("cannot be read"); got > 0 {
			b.Errorf("an answer that is not waited for is said to be a failure:\n%s", b.Said)
		}
	})
}

// TestOfAnOutageItIsNotSaidThatWhatIsPolledIsAbsent: what does not answer although the API
// server does is told.
func TestOfAnOutageItIsNotSaidThatWhatIsPolledIsAbsent(t *testing.T) {
	k := burning()
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return append(b.Everything(), observers.Poll(observers.Polled[lamp]{
				Name: "lamps", Noun: lamps(nil), Ask: k.ask, Interval: every, Timeout: 5 * time.Second,
			}))
		}
	}, func(b *bench) {
		k.change(func() { k.err = kube.ErrUnavailable })
		b.Fall(observerstest.ErrRefused)
		b.Pass(time.Hour)
		if absent := b.Absent(); len(absent) > 0 {
			b.Errorf("beside the outage it is said: %q", absent)
		}
		b.Rise()
		b.Pass(time.Hour)
		if absent := b.Absent(); len(absent) != 1 {
			b.Errorf("after the outage it is said: %q", absent)
		}
		k.change(func() { k.err = errors.New("what it says makes no sense") })
		b.Fall(observerstest.ErrRefused)
		b.Pass(time.Hour)
		if absent := b.Absent(); len(absent) != 1 {
			b.Errorf("beside an outage of what answers nonsense it is said: %q", absent)
		}
	})
}
