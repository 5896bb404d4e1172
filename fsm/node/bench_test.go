package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// thousands is a world of n nodes, of which the first lost ones are lost, with
// pods terminating pods spread over the lost ones.
func thousands(b *testing.B, n, lost, pods int) *world {
	w := newWorld(b)
	for i := range n {
		w.observe(fmt.Sprintf("w%05d", i))
	}
	for i := range lost {
		w.lose(fmt.Sprintf("w%05d", i))
	}
	for i := range pods {
		w.terminating(fmt.Sprintf("w%05d", i%lost), fmt.Sprintf("pod-%d", i))
	}
	w.write(fsm.Decide(w.s, w.p.whole(), w.now).Events...)
	return w
}

func BenchmarkDecide5000Nodes(b *testing.B) {
	for name, test := range map[string]struct {
		lost  int
		limit string
		pass  time.Duration
		fold  bool
	}{
		"storm of 2500 at rest":           {2500, "55%", time.Hour / 30, true},
		"storm of 5000 refused at rest":   {5000, "55%", 2 * time.Hour, true},
		"5000 pods requested of 50 nodes": {50, "55%", 6 * time.Minute, false},
		"5000 pods clearing on 50 nodes":  {50, "55%", 6 * time.Minute, true},
	} {
		b.Run(name, func(b *testing.B) {
			w := thousands(b, 5000, test.lost, 5000)
			w.pass(test.pass)
			if test.fold {
				w.write(fsm.Decide(w.s, w.p.whole(), w.now).Events...)
			}
			b.ReportAllocs()
			for b.Loop() {
				d := fsm.Decide(w.s, w.p.whole(), w.now)
				if test.fold && len(d.Events) > 0 {
					b.Fatal("not at rest")
				}
			}
		})
	}
}

// BenchmarkCheckRule is what each preflight of each step of a clear costs the
// loop while 50 of 5000 nodes are being cleared.
func BenchmarkCheckRule(b *testing.B) {
	w := thousands(b, 5000, 50, 5000)
	w.pass(6 * time.Minute)
	w.write(fsm.Decide(w.s, w.p.whole(), w.now).Events...)
	rec := w.s.OpenActions()[0]
	for b.Loop() {
		if fsm.CheckRule(w.s, w.p.whole(), w.now, RuleStormBrake, rec).Hold {
			b.Fatal("held")
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	w := thousands(b, 5000, 2500, 5000)
	w.pass(6 * time.Minute)
	w.write(fsm.Decide(w.s, w.p.whole(), w.now).Events...)
	for _, rec := range w.s.OpenActions() {
		w.plan(rec.ID)
		for range 5 {
			w.startStep(rec.ID, "look")
			w.act(rec.ID, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		s := fsm.NewState(Capability())
		for _, e := range w.events {
			s.Apply(e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(w.events)), "ns/event")
}

func BenchmarkSnapshot(b *testing.B) {
	w := thousands(b, 5000, 2500, 5000)
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.s.Snapshot(); err != nil {
				b.Fatal(err)
			}
		}
	})
	snapshot, err := w.s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := fsm.LoadState(snapshot, Capability()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
