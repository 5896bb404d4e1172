package minio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// TestTwoEKCOsAtOnceLoseNothing: the other one has the journal as it was at that moment.
func TestTwoEKCOsAtOnceLoseNothing(t *testing.T) {
	for tick := range 6 {
		t.Run(fmt.Sprint(tick), func(t *testing.T) {
			inADuoOf(t, 100*time.Millisecond, func(b *duo) {
				b.Source.SetLatency(5 * time.Millisecond)
				r := b.start()
				b.comes("started cut-over")
				b.Pass(time.Duration(tick) * 300 * time.Millisecond)
				other, record := b.Config(b.definitions(nil)), b.Record()
				other.Store = b.Store.Copy()
				ctx, stop := context.WithCancel(b.T.Context())
				ended := make(chan error, 1)
				go func() { ended <- actions.NewRunner(other).Run(ctx, record, nil) }()
				for range 120 {
					if b.ServiceLeads() == minio.App && b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
						break
					}
					b.Pass(time.Minute)
				}
				stop()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				r.Halt()
				if got := b.outcome(); !strings.HasPrefix(got, `the Service leads to "ha-minio", Deployment false`) {
					t.Errorf("%s\n%s", got, strings.Join(b.Story(), "\n"))
				}
			})
		})
	}
}

func TestNothingIsRemovedFromWhatServes(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Target.AddBucket(plain, nil)
		v := b.Target.Write(plain, "new", "by a client", s3.Attributes{}, time.Now())
		m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
		both, err := m.open(w.T.Context(), journal.ActionRecord{Plan: journal.Plan{Facts: []byte("{}")}})
		if err != nil {
			t.Fatal(err)
		}
		if err := both.target.Set(w.T.Context(), plain, s3.BucketTags, "t"); err != nil {
			t.Error(err) // and that it may be changed is known from now on
		}
		b.Point(`{"app":"ha-minio"}`)
		if err := both.target.Remove(w.T.Context(), plain, v); !errors.Is(err, errServes) {
			t.Errorf("removed: %v", err)
		}
		w.Pass(2 * time.Second)
		if err := both.target.Put(w.T.Context(), plain, v, nil, strings.NewReader("by a client"), false); !errors.Is(err, errServes) {
			t.Errorf("put: %v", err)
		}
		if !strings.Contains(b.Target.Dump(), "by a client") {
			t.Error("it is gone")
		}
	})
}

func TestASourceThatChangesTooFastHoldsItWithTheRates(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.migration.CutOverLimit = time.Second
		b.migration.CopyBandwidth = 10 // what is written in a second has more bytes
		r := b.start()
		b.held(journal.StepCatchUpMinio, MinioSourceCalm, "changes faster than EKCO can copy: a pass over")
		b.backs()
		b.writer.Stop()
		b.ends(r, handedOver)
	})
}

func TestASourceThatIsSlowToListIsNotToldToChangeTooFast(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Source.SetLatency(5 * time.Second) // a pass without a change takes longer than the limit
		b.ends(b.start(), handedOver)
		if tooFast := strings.Contains(strings.Join(b.Story(), "\n"), "changes faster"); tooFast || b.LastLine() != "ended done" {
			t.Errorf("the story is\n%s", strings.Join(b.Story(), "\n"))
		}
	})
}

// TestABusySourceIsMigrated: hundreds of objects change while both sides are compared, and
// all of them can be copied soon.
func TestABusySourceIsMigrated(t *testing.T) {
	inADuo(t, func(b *duo) {
		const busy = "busy"
		b.Source.AddBucket(busy, nil)
		ctx, stop := context.WithCancel(b.T.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
				if b.ServiceLeads() != "minio" {
					continue
				}
				for i := range 50 {
					b.Source.Write(busy, fmt.Sprintf("%03d-%d", i, n%10), fmt.Sprint("content ", n), s3.Attributes{}, time.Now())
				}
			}
		}()
		b.Source.SetLatency(200 * time.Millisecond)
		r := b.start()
		b.comes("done cut-over")
		stop()
		<-ended
		if story := strings.Join(b.Story(), "\n"); strings.Contains(story, "held \"catch-up\"") || strings.Contains(story, "failed catch-up") {
			t.Errorf("the story is\n%s", story)
		}
		b.ends(r, handedOver)
	})
}

func TestACopyGoesOnWhereItWas(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		const objects = 2000
		for i := range objects {
			b.Source.Write(plain, fmt.Sprintf("object-%04d", i), "content", s3.Attributes{}, time.Now())
		}
		b.Target.SetLatency(3 * time.Second)
		b.asks()
		r := b.start()
		b.comes("noted copy")
		b.Pass(time.Minute)
		var at journal.MinioCopied
		at, err := outputOf[journal.MinioCopied](b.Record(), journal.StepCopyMinio)
		if err != nil || at.Bucket != plain || at.Key == "" || at.Versions == 0 || at.Versions >= objects {
			t.Fatalf("%v: noted %+v", err, at)
		}
		r.Halt()
		if notes := strings.Count(strings.Join(b.Story(), "\n"), "noted copy"); notes > 4 {
			t.Errorf("%d notes in about two minutes", notes)
		}
		before := len(b.Target.Effects())
		b.Target.SetLatency(0)
		b.ends(b.start(), handedOver)
		for _, effect := range b.Target.Effects()[before:] {
			if strings.HasPrefix(effect.Name, "put "+plain+"/") && effect.Name <= "put "+plain+"/"+at.Key {
				t.Errorf("%s was done again, though all up to %s was", effect.Name, at.Key)
			}
		}
	})
}

// TestASourceThatChangesMuchBeforeTheSwitchHasNoOutage: the last pass before it says so.
func TestASourceThatChangesMuchBeforeTheSwitchHasNoOutage(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.migration.CutOverLimit, b.migration.CopyBandwidth = time.Second, 10
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		for i := range 20 {
			b.Source.Write(plain, fmt.Sprintf("late-%d", i), strings.Repeat("x", 100), s3.Attributes{}, time.Now())
		}
		before := b.Calls("patch services")
		b.Cordon("a", false)
		b.held(journal.StepCutOverMinio, MinioTries, "changes faster than EKCO can copy")
		if b.Calls("patch services") != before {
			t.Error("clients were kept out")
		}
		b.ends(r, handedOver)
	})
}

// TestAPodOfSomebodyElseThatComesWithTheOutageStopsTheSwitch: clients may be connected to it, and
// nobody ends it.
func TestAPodOfSomebodyElseThatComesWithTheOutageStopsTheSwitch(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		crowd := sync.OnceFunc(func() { b.Crowd(true) })
		b.BeforeEffect = func(effect string) {
			if effect == "patch "+minio.ServiceRef(miniosim.Namespace).String() {
				crowd()
			}
		}
		b.asks()
		r := b.start()
		b.comes(`"tries":1`)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "minio-by-hand has the label app=minio but does not belong to Deployment minio")
		b.backs()
		b.Crowd(false)
		b.ends(r, handedOver)
	})
}

// TestAPodOfSomebodyElseStopsAForcedSwitch: the pod that serves is not replaced then, so nothing else looks for others.
func TestAPodOfSomebodyElseStopsAForcedSwitch(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		crowd := sync.OnceFunc(func() { b.Crowd(true) })
		b.BeforeEffect = func(effect string) {
			if effect == "patch "+minio.ServiceRef(miniosim.Namespace).String() {
				crowd()
			}
		}
		b.force(r)
		b.comes("failed cut-over")
		b.Pass(time.Minute)
		b.backs()
		r.Halt()
	})
}

// TestWhatHoldsTheSwitchIsAskedOnceMoreRightBeforeIt: between the preflights and the outage somebody may have
// done what they did not see.
func TestWhatHoldsTheSwitchIsAskedOnceMoreRightBeforeIt(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		begins := func(want string) {
			t.Helper()
			m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
			a := &attempt{migrator: m, step: actions.StepContext{Action: recordOf(t, ours, nil)}}
			_, err := a.mayBegin(w.T.Context())
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		begins("")
		b.Cordon("a", true)
		begins("no replacement can start: node a is cordoned")
		b.Cordon("a", false)
		past := minio.ServiceRef(miniosim.Namespace)
		past.Name = "another"
		b.Put(past, `{"spec":{"selector":{"app":"minio"}}}`)
		begins("without Service minio: another")
	})
}
