package minio

import (
	"context"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
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
