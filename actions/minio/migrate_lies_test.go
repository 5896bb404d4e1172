package minio

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
)

// TestATargetThatAcknowledgesWhatItDoesNotKeepIsNotSwitchedTo: what the last pass wrote is
// looked at before clients are led there.
func TestATargetThatAcknowledgesWhatItDoesNotKeepIsNotSwitchedTo(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Hang(true)
		b.asks()
		var lies atomic.Bool
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both, Around: func(effect string, do func() error) error {
			if lies.Load() && effect == miniosim.TargetSide+" put "+plain+"/late" {
				return nil
			}
			return do()
		}}
		r := b.Start(b.Config([]actions.Definition{migrating(m)}))
		b.comes("noted cut-over")
		lies.Store(true)
		b.Source.Write(plain, "late", "text", s3.Attributes{}, time.Now())
		b.Hang(false)
		b.Pass(3 * time.Minute)
		b.backs()
		if story := strings.Join(b.Story(), "\n"); !strings.Contains(story, "1 objects or settings differ though nobody writes: object plain/late") {
			t.Errorf("the story is\n%s", story)
		}
		lies.Store(false)
		b.ends(r, handedOver)
		if !strings.Contains(b.Target.Dump(), `"late"`) {
			t.Errorf("what was written last is lost:\n%s", b.Target.Dump())
		}
	})
}
