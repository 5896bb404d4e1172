package minio

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

var report = minio.Nested{Bucket: plain, Key: "report/2026.csv", Above: "report"}

func TestAMigrationWaitsForObjectsBelowOthers(t *testing.T) {
	for name, end := range map[string]func(b *duo, r *actionstest.Running){
		"renamed": func(b *duo, r *actionstest.Running) { b.Unnest(report); b.Retry(r) },
		"renamed, and EKCO looks by itself": func(b *duo, _ *actionstest.Running) {
			b.Unnest(report)
			b.Pass(time.Hour)
		},
		"given up": func(b *duo, r *actionstest.Running) { b.force(r) },
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Nest(true, report)
				b.asks()
				r := b.start()
				b.held(journal.StepLookBelowMinio, MinioNothingNested, plain+"/report/2026.csv (below report)")
				b.Retry(r) // without force it holds
				b.Pass(2 * time.Hour)
				b.held(journal.StepLookBelowMinio, MinioNothingNested, "report/2026.csv")
				if listOf(b.Record()) == "" {
					t.Error("it can be forced without the list")
				}
				if buckets, err := b.Target.Buckets(t.Context()); err != nil || len(buckets) > 0 {
					t.Errorf("buckets %q were copied, %v", buckets, err)
				}
				end(b, r)
				b.comes("done prepare")
				b.Cancel(r)
				r.End()
			})
		})
	}
}

// TestAnObjectBelowAnotherThatComesWhileTheDeletionWaitsHoldsIt: the step that looks for those is over then.
func TestAnObjectBelowAnotherThatComesWhileTheDeletionWaitsHoldsIt(t *testing.T) {
	other := minio.ServiceRef(miniosim.Namespace)
	other.Name = "minio-nodeport"
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
		r := b.start()
		b.Pass(DefaultKeepSource - time.Minute)
		b.Source.SetLatency(5 * time.Second)
		b.comes("started delete-deployment")
		b.Source.SetLatency(0)
		b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
		b.held(journal.StepDeleteMinioDeployment, MinioNoBypass, "minio-nodeport")
		b.Nest(true, report)
		b.Remove(other)
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "report/2026.csv")
		b.Pass(2 * time.Hour)
		if got := b.outcome(); !strings.Contains(got, stays) {
			t.Errorf("the outcome is %s", got)
		}
		b.force(r)
		b.ends(r, handedOver)
	})
}

// Clients may write such an object at any time before the switch.
func TestTheSourceIsKeptForObjectsBelowOthers(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done " + journal.StepLookBelowMinio)
		b.Nest(true, report)
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "report/2026.csv")
		b.Pass(2 * time.Hour)
		if got := b.outcome(); !strings.Contains(got, `leads to "ha-minio", Deployment true, claim true`) {
			t.Errorf("the outcome is %s", got)
		}
		other := report
		other.Key = "report/2027.csv"
		b.Nest(true, other) // which nobody gives up
		b.force(r)
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "2 objects")
		b.Unnest(report)
		b.Unnest(other)
		b.Retry(r)
		r.End()
		if got := b.outcome(); got != handedOver {
			t.Errorf("the outcome is %s", got)
		}
	})
}

func TestADriveThatCannotBeLookedThroughHolds(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.HideDrives(true)
		b.asks()
		r := b.start()
		b.held(journal.StepLookBelowMinio, MinioNothingNested, "cannot read /data")
		if list := listOf(b.Record()); list != "" {
			t.Errorf("there is nothing to be read, and a force must name list %s", list)
		}
		b.HideDrives(false)
		b.Retry(r)
		r.End()
		if got := b.outcome(); got != handedOver {
			t.Errorf("the outcome is %s", got)
		}
	})
}

func TestNoReplicaMovesWhileObjectsAreBelowOthers(t *testing.T) {
	for name, prepare := range map[string]func(s *store){"one that runs": (*store).crowded, "one without its volume": (*store).orphaned} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				prepare(s)
				s.Nest(false, report)
				s.moves(0)
				r := s.Start(s.Config(s.definitions()))
				s.comes(journal.StepLookBelowMinio, MinioNothingNested, "report/2026.csv")
				s.Pass(2 * time.Hour)
				if took := s.took(); len(took) > 0 {
					t.Errorf("it took %q", took)
				}
				s.Unnest(report)
				s.Retry(r)
				r.End()
				if took := s.took(); len(took) == 0 {
					t.Error("nothing was moved when the object was gone")
				}
			})
		})
	}
}

// A drive that was restored lacks what is below others: the other drives have it.
func TestEveryDriveIsLookedThrough(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.Nest(false, report)
		for i := range 5 {
			s.Forget(i)
		}
		s.moves(0)
		r := s.Start(s.Config(s.definitions()))
		s.comes(journal.StepLookBelowMinio, MinioNothingNested, "1 object ")
		s.Append("cli:me@here", journal.ActionRetried{Force: true, List: listOf(s.Record())}, journal.TypeActionRetried)
		s.Tell(r, journal.TypeActionRetried)
		r.End()
		if took := s.took(); len(took) == 0 {
			t.Error("nothing was moved when the object was given up")
		}
	})
}

func TestOnlyWhatIsNamedCanBeGivenUp(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		for i := range maxNested + 1 {
			one := report
			one.Key = fmt.Sprint("report/", i)
			b.Nest(true, one)
		}
		b.asks()
		r := b.start()
		b.held(journal.StepLookBelowMinio, MinioNothingNested, ", and more, too many")
		b.force(r)
		b.Pass(2 * time.Hour)
		b.held(journal.StepLookBelowMinio, MinioNothingNested, ", and more, too many")
		b.Cancel(r)
		r.End()
	})
}

// TestAllThatIsGivenUpIsNamed: a person releases what he has read.
func TestAllThatIsGivenUpIsNamed(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		for i := range maxNested {
			one := report
			one.Key = fmt.Sprint("report/", i)
			b.Nest(true, one)
		}
		b.asks()
		r := b.start()
		for i := range maxNested {
			b.held(journal.StepLookBelowMinio, MinioNothingNested, fmt.Sprintf("/report/%d (below ", i))
		}
		b.force(r)
		b.comes("done look-below ")
		r.Halt()
	})
}

// plannedWithout has actions planned without a step, as an earlier EKCO did.
func plannedWithout(definitions []actions.Definition, left string) []actions.Definition {
	for i, kind := range definitions {
		isLeft := func(step string) bool { return step == left }
		definitions[i].Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
			made, err := kind.Plan(ctx, record)
			for n, step := range made.Steps {
				if slices.ContainsFunc(step.After, isLeft) {
					made.Steps[n].After = made.Steps[n-1].After
				}
			}
			made.Steps = slices.DeleteFunc(made.Steps, func(step journal.PlannedStep) bool { return isLeft(step.ID) })
			return made, err
		}
	}
	return definitions
}

func TestPlansOfEarlierEKCOsTakeNothingAwayUnlooked(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		w.RunToEnd(w.Config(plannedWithout(s.definitions(), journal.StepLookBelowMinio)))
		if len(s.took()) != 0 || !strings.Contains(s.last(), `"abandoned"`) {
			t.Errorf("deleted were %q: %s", s.took(), s.last())
		}
	})
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		w.RunToEnd(w.Config(plannedWithout(b.definitions(nil), journal.StepLookBelowAgainMinio)))
		if got := b.outcome(); !strings.Contains(got, `leads to "ha-minio", Deployment true, claim true`) || !strings.Contains(b.LastLine(), "ended abandoned") {
			t.Errorf("%s, %s", b.LastLine(), got)
		}
	})
}
