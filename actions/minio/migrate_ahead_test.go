package minio

import (
	"context"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// TestThatItSwitchesIsMirroredFirst: an EKCO on another node, which has only the mirror, would
// take the switch for somebody else's.
func TestThatItSwitchesIsMirroredFirst(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		cfg, known := b.Config(b.definitions(nil)), false
		cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			if strings.Contains(strings.Join(w.Story(), "\n"), `"switches":true`) && b.ServiceLeads() == "" {
				known = true
			}
			return actions.Pass()
		})
		w.RunToEnd(cfg)
		if !known || !strings.HasPrefix(b.outcome(), handedOver) {
			t.Errorf("mirrored %t, %s\n%s", known, b.outcome(), strings.Join(w.Story(), "\n"))
		}
	})
}

// TestWhatALookFoundIsMirroredFirst: an EKCO on another node would take the next pod's store for the one that was copied,
// and the deletion for somebody else's.
func TestWhatALookFoundIsMirroredFirst(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asks()
		pod := b.SinglePods()[0]
		cfg, store, deletes := b.Config(b.definitions(nil)), false, false
		cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			story := strings.Join(w.Story(), "\n")
			store = store || strings.Contains(story, "noted compare {") && b.SinglePods()[0] == pod
			deletes = deletes || strings.Contains(story, "noted delete-deployment {") && b.Object(minio.DeploymentRef(miniosim.Namespace)) != nil
			return actions.Pass()
		})
		w.RunToEnd(cfg)
		if !store || !deletes || !strings.HasPrefix(b.outcome(), handedOver) {
			t.Errorf("mirrored are the store %t and the deletion %t, %s", store, deletes, b.outcome())
		}
	})
}
