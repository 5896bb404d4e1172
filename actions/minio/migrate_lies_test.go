package minio

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
)

// tardy are stores of which the target, as long as it shall, does not do with an object that is
// written last as it should.
type tardy struct {
	minio.Stores
	is atomic.Bool
	// unlisted: it cannot be listed; otherwise it is acknowledged and not kept.
	unlisted bool
}

func (l *tardy) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := l.Stores.Store(addresses, credentials)
	return tardyStore{store, l}, err
}

func (l *tardy) around(effect string, do func() error) error {
	if l.is.Load() && !l.unlisted && effect == miniosim.TargetSide+" put "+plain+"/late" {
		return nil
	}
	return do()
}

type tardyStore struct {
	minio.Store
	by *tardy
}

func (s tardyStore) VersionsOf(ctx context.Context, bucket, key string) ([]s3.Version, error) {
	if s.by.is.Load() && s.by.unlisted {
		return nil, fmt.Errorf("list %s: %w", key, s3.ErrDenied)
	}
	return s.Store.VersionsOf(ctx, bucket, key)
}

// TestATargetThatMayNotKeepWhatItAcknowledgesIsNotSwitchedTo: what the last pass wrote is
// looked at before clients are led there.
func TestATargetThatMayNotKeepWhatItAcknowledgesIsNotSwitchedTo(t *testing.T) {
	for want, unlisted := range map[string]bool{
		"1 objects or settings differ although no client can write: object plain/late": false,
		"list late": true,
	} {
		t.Run(want, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				for i := range 100 { // of so many only what changed is compared
					b.Source.Write(plain, fmt.Sprintf("object-%03d", i), "text", s3.Attributes{}, time.Now())
				}
				b.Hang(true)
				b.asks()
				l := &tardy{unlisted: unlisted}
				l.Stores = miniosim.Network{Both: b.Both, Around: l.around}
				m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
				m.Stores = l
				r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
				b.comes("noted cut-over")
				l.is.Store(true)
				b.Source.Write(plain, "late", "text", s3.Attributes{}, time.Now())
				b.Hang(false)
				b.Pass(3 * time.Minute)
				b.backs()
				if story := strings.Join(b.Story(), "\n"); !strings.Contains(story, want) {
					t.Errorf("the story is\n%s", story)
				}
				l.is.Store(false)
				b.ends(r, handedOver)
				if !strings.Contains(b.Target.Dump(), `"late"`) {
					t.Errorf("what was written last is lost:\n%s", b.Target.Dump())
				}
			})
		})
	}
}
