package observers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// desk is a lamp as the journal has it.
type desk struct {
	UID   string `json:"-"`
	Burns bool   `json:"burns"`
	// Bulbs are always the same, and a value of their own at each look.
	Bulbs []string `json:"-"`
}

// oneDesk polls the lamp "desk" by its name; changes look through the nudge. off says why
// it does not.
func oneDesk(b *bench, nudge *observers.Nudge, known map[string]desk, off string) {
	b.Sources = func() []observers.Source {
		one := observers.PollOne(observers.PolledOne[desk]{
			Machine: "lamp", Subject: journal.Subject{Kind: "Lamp", Name: "desk"}, Known: known, Off: off, Interval: every,
			UID: func(d desk) string { return d.UID },
			Get: func(ctx context.Context) (desk, error) {
				got, err := b.Get(ctx, "configmaps", "desk")
				if err != nil {
					return desk{}, err
				}
				o := got.(*corev1.ConfigMap)
				return desk{string(o.UID), o.Data["burns"] == "yes", []string{"E27"}}, nil
			},
		})
		return append(b.Everything(), nudge.Over(one)...)
	}
}

func TestOneObjectIsReadByItsNameAndItsAbsenceIsOneFact(t *testing.T) {
	var nudge observers.Nudge
	watching(t, func(b *bench, _ *observers.Options) { oneDesk(b, &nudge, nil, "") }, func(b *bench) {
		b.Pass(3 * every)
		b.WroteThings()
		if absent := b.Absent(); len(absent) != 0 || b.Logged("EKCO does not observe it") != 1 {
			b.Errorf("Absent is %q while nothing is installed:\n%s", absent, b.Said)
		}
		b.Put(lampObject("desk", "2", "yes"))
		b.Pass(every + every/10)
		b.WroteThings(`Lamp desk 2 {"burns":true}`)
		b.Remove(lampObject("desk", "2", "yes"))
		b.Pass(2*every + every/2)
		b.WroteThings("Lamp desk 2 gone: deleted")
		b.Pass(every + every/10)
		if absent := b.Absent(); len(absent) != 0 {
			b.Errorf("Absent is %q after it was removed", absent)
		}
		b.Set(func() { b.Forbidden["get configmaps"] = true })
		b.Put(lampObject("desk", "3", "yes"))
		b.Pass(2 * every)
		b.WroteThings()
		want := []string{"Lamp desk: not observed; EKCO retries every 10m0s (configmaps is forbidden: RBAC says no)"}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		b.Set(func() { b.Forbidden["get configmaps"] = false })
		b.Pass(every + every/10)
		b.WroteThings(`Lamp desk 3 {"burns":true}`)
	})
}

func TestOneObjectThatWentWhileNobodyLookedIsGoneAtTheStart(t *testing.T) {
	var nudge observers.Nudge
	watching(t, func(b *bench, _ *observers.Options) {
		oneDesk(b, &nudge, map[string]desk{"desk": {"1", true, []string{"E27"}}, "hall": {"9", true, nil}}, "")
	}, func(b *bench) { b.WroteThings("Lamp desk 1 gone: absent at start") })
}

// TestWhatNobodyWantsToKnowOfEndsAndIsNotRead: what is known of it would stay as it is for
// ever.
func TestWhatNobodyWantsToKnowOfEndsAndIsNotRead(t *testing.T) {
	for name, known := range map[string]map[string]desk{"known": {"desk": {"1", true, []string{"E27"}}}, "not known": nil} {
		t.Run(name, func(t *testing.T) {
			var nudge observers.Nudge
			watching(t, func(b *bench, _ *observers.Options) {
				oneDesk(b, &nudge, known, "light_desk is off")
				b.Put(lampObject("desk", "1", "yes"))
			}, func(b *bench) {
				if known != nil {
					b.WroteThings("Lamp desk 1 gone: light_desk is off")
				}
				b.Pass(3 * every)
				b.WroteThings()
				if n := observerstest.Count(b.TakeCalls(), "get configmaps"); n != 0 || len(b.Absent()) != 0 {
					b.Errorf("asked %d times; Absent is %q", n, b.Absent())
				}
			})
		})
	}
}

func TestANudgeHasWhatEKCOChangedLookedAtAtOnce(t *testing.T) {
	var nudge observers.Nudge
	nudge.Look() // there is nobody yet
	watching(t, func(b *bench, _ *observers.Options) {
		oneDesk(b, &nudge, nil, "")
		b.Put(lampObject("desk", "2", "no"))
	}, func(b *bench) {
		b.WroteThings(`Lamp desk 2 {"burns":false}`)
		b.Put(lampObject("desk", "2", "yes"))
		b.Pass(time.Second)
		b.WroteThings()
		nudge.Look()
		b.Settle()
		b.WroteThings(`Lamp desk 2 {"burns":true}`)
		if n := observerstest.Count(b.TakeCalls(), "get configmaps"); n != 2 {
			b.Errorf("asked %d times", n)
		}
	})
}

// restless polls a lamp that is another each time, and counts how often.
func restless(b *bench, one observers.PolledOne[desk], asked *int) (look func()) {
	one.Machine, one.Subject, one.Interval = "lamp", journal.Subject{Kind: "Lamp", Name: "desk"}, every
	one.UID = func(d desk) string { return d.UID }
	one.Get = func(context.Context) (desk, error) {
		*asked++
		return desk{UID: "1", Burns: *asked%2 == 0}, nil
	}
	source := observers.PollOne(one)
	b.Sources = func() []observers.Source { return append(b.Everything(), source) }
	return source.Look
}

// TestLooksAreAnsweredSoonButApart: what others do leads to them, as often as it happens.
func TestLooksAreAnsweredSoonButApart(t *testing.T) {
	var asked int
	var look func()
	watching(t, func(b *bench, _ *observers.Options) {
		look = restless(b, observers.PolledOne[desk]{Apart: time.Second}, &asked)
	}, func(b *bench) {
		b.Pass(5 * time.Second)
		before := asked
		look()
		b.Settle()
		if asked != before+1 {
			t.Errorf("after a look it was asked %d times", asked-before)
		}
		for range 100 {
			look()
			b.Pass(100 * time.Millisecond)
		}
		if got := asked - before; got < 10 || got > 12 {
			t.Errorf("within ten seconds of looks it was asked %d times", got)
		}
	})
}

func TestOneObjectThatChangesAllTheTimeIsToldNowAndThen(t *testing.T) {
	var asked int
	var look func()
	watching(t, func(b *bench, _ *observers.Options) {
		look = restless(b, observers.PolledOne[desk]{Allowance: observers.Allowance{Burst: 3, Every: time.Minute}}, &asked)
	}, func(b *bench) {
		for range 60 {
			look()
			b.Pass(time.Second)
		}
		if told := len(b.Paper.Things()); asked < 60 || told > 5 {
			t.Errorf("asked %d times, told %d times", asked, told)
		}
	})
}
