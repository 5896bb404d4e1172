package minio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// disturbed are stores of which the source is disturbed as long as it shall be.
type disturbed struct {
	minio.Stores
	is atomic.Bool
	// opened is called for each object of the source that is opened.
	opened func(bucket string) error
}

func (d *disturbed) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := d.Stores.Store(addresses, credentials)
	if err != nil || !strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return disturbedSource{store, d}, nil
}

type disturbedSource struct {
	minio.Store
	by *disturbed
}

func (s disturbedSource) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	if s.by.is.Load() && s.by.opened != nil {
		if err := s.by.opened(bucket); err != nil {
			return s3.Content{}, err
		}
	}
	return s.Store.Open(ctx, bucket, v, offset, length)
}

// disturb starts a migration with such a source.
func (b *duo) disturb(d *disturbed) *actionstest.Running {
	b.T.Helper()
	b.asks()
	d.Stores = miniosim.Network{Both: b.Both}
	m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
	m.Stores = d
	return b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
}

// TestMoreChangesThanCanBeToldApartHoldIt: nobody could say that all is the same.
func TestMoreChangesThanCanBeToldApartHoldIt(t *testing.T) {
	report := replica.Report{Count: replica.MaxDifferences + 1}
	for i := range replica.MaxDifferences {
		report.Differences = append(report.Differences, replica.Difference{Name: fmt.Sprint(i)})
	}
	one := namedDifferences(report, loss{})
	if len(one) != replica.MaxDifferences+1 || !one.hasUnnamed() {
		t.Errorf("%d are suspected, of which not all are known: %t", len(one), one.hasUnnamed())
	}
	if stays := (differencesByName{unnamedDifferences: "differ"}).remaining(differencesByName{unnamedDifferences: "differ"}); len(stays) != 0 {
		t.Errorf("%v is said to stay", stays)
	}
	_, err := catchUp{}.unfinishedError(journal.MinioCaughtUp{Versions: 20_000, Listed: journal.Duration(time.Minute)})
	left, is := errors.AsType[*actions.UnfinishedError](err)
	if !is || !left.Waits {
		t.Fatalf("it comes to %v", err)
	}
	record := journal.ActionRecord{Steps: map[string]journal.StepRecord{journal.StepCatchUpMinio: {Outputs: left.Outputs}}}
	const want = "standalone MinIO changes faster than EKCO can compare it: in each of 10 comparisons more than 10000 of 20000 versions differed; the last one took 1m0s; EKCO"
	if got := sourceCalm(t.Context(), record); got.Kind != actions.VerdictHold || !strings.HasPrefix(got.Reason, want) {
		t.Errorf("it is said: %s", got.Reason)
	}
}

// TestMoreThatCannotBeCarriedThanIsNamedHoldsIt: nobody could say what would be lost.
func TestMoreThatCannotBeCarriedThanIsNamedHoldsIt(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		const secret = "secret"
		b.Source.AddBucket(secret, nil)
		for i := range 150 {
			b.Source.Write(secret, fmt.Sprintf("object-%03d", i), "content", s3.Attributes{}, time.Now())
		}
		d := &disturbed{opened: func(bucket string) error {
			if bucket == secret {
				return s3.ErrUnreadable
			}
			return nil
		}}
		d.is.Store(true)
		r := b.disturb(d)
		b.held(journal.StepCatchUpMinio, MinioSourceCalm, "150 versions cannot be carried over, but EKCO names at most 100; the first are object secret/object-")
		b.Pass(3 * time.Hour)
		if b.Count("stalled") != 0 {
			t.Errorf("the story is\n%s", strings.Join(b.Story(), "\n"))
		}
		b.backs()
		d.is.Store(false)
		b.ends(r, handedOver)
	})
}

// TestWhoSwitchesItOffAndOnAgainGoesOn: wherever it is, and again and again.
func TestWhoSwitchesItOffAndOnAgainGoesOn(t *testing.T) {
	for _, after := range []string{"started copy", "done catch-up", "noted cut-over", "done cut-over"} {
		t.Run(after, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.asks()
				b.Source.SetLatency(time.Millisecond)
				known := journal.MinioMigrate{}
				for range 2 {
					r := b.start()
					b.comes(after)
					if cut := b.cut(); cut.Version != "" {
						known = journal.MinioMigrate{Switched: true, From: b.deployment(), Version: cut.Version, Fingerprint: cut.Fingerprint, Target: "target-1"}
						after = "planned"
					}
					b.AppendAbout(b.subject, "operator", journal.ActionCancelling{Reason: "enable_ha_minio is off"}, journal.TypeActionCancelling)
					b.Tell(r, journal.TypeActionCancelling)
					r.End()
					if b.ServiceLeads() == "" || !strings.HasPrefix(b.LastLine(), "ended abandoned enable_ha_minio is off") {
						t.Fatalf("the Service leads to %q: %s", b.ServiceLeads(), b.LastLine())
					}
					if !known.Switched {
						known = journal.MinioMigrate{Ours: time.Now(), Source: "store-1", Target: "target-1"}
					}
					b.Pass(5 * time.Minute)
					b.anew()
					b.asksWith(known)
				}
				b.ends(b.start(), handedOver)
				if story := strings.Join(b.Story(), "\n"); strings.Contains(story, MinioNothingForeign) || strings.Contains(story, MinioNothingLacks) || b.LastLine() != "ended done" {
					t.Errorf("the story is\n%s", story)
				}
			})
		})
	}
}

// TestACatchUpSaysHowFarItIs of how much, and how long the rest may take.
func TestACatchUpSaysHowFarItIs(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Source.AddBucket("more", nil)
		const objects = 300
		write := func(content string) {
			for i := range objects {
				b.Source.Write("more", fmt.Sprintf("%03d", i), content, s3.Attributes{}, time.Now())
			}
		}
		write("first")
		b.Source.SetLatency(500 * time.Millisecond)
		var mu sync.Mutex
		var told []actions.Progress
		cfg := b.Config(b.definitions(nil))
		cfg.Watcher = func(_, step string, p actions.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if step == journal.StepCatchUpMinio && p.Unit == "objects" {
				told = append(told, p)
			}
		}
		r := b.Start(cfg)
		b.comes("started catch-up")
		write("another")
		b.ends(r, handedOver)
		estimated := slices.ContainsFunc(told, func(p actions.Progress) bool { return p.Left > 0 && p.Done < p.Total })
		short := slices.ContainsFunc(told, func(p actions.Progress) bool { return p.Total < objects || p.Done > p.Total })
		if !estimated || short {
			t.Errorf("it said %+v", told)
		}
	})
}
