package ring

import (
	"context"
	"log/slog"
	"time"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// say logs what an administrator looks for in the log of a bad night: what
// became of nodes, what was decided, and what keeps EKCO from acting. The
// runner logs its own steps.
func (r *Ring) say(event journal.Event) {
	payload, err := event.Decode()
	if err != nil {
		return
	}
	log := r.log.With("seq", event.Seq, "node", event.Subject.Node)
	if event.Action != "" {
		log = log.With("action", event.Action)
	}
	switch p := payload.(type) {
	case *journal.NodeTransitioned:
		level := slog.LevelWarn
		if p.To == fsmnode.Healthy || p.To == fsmnode.Cleared || p.To == fsmnode.Purged {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "node is "+string(p.To), "before", p.From, "reason", p.Reason)
	case *journal.NodeTraced:
		log.Warn("asked for a node that EKCO never saw", "by", event.Actor, "found", p.Found, "doubts", p.Doubts)
	case *journal.ActionRequested:
		log.Info("action requested", "kind", p.Kind, "by", event.Actor, "reason", p.Reason)
	case *journal.ActionRefused:
		log.Warn("action refused", "kind", p.Kind, "by", event.Actor, "rule", p.Rule, "reason", p.Reason)
	case *journal.PolicyRefused:
		log.Warn("policy holds EKCO back", "kind", p.Kind, "rule", p.Rule, "reason", p.Reason)
	case *journal.PolicyLifted:
		log.Info("policy no longer holds EKCO back", "kind", p.Kind, "rule", p.Rule)
	case *journal.PauseSet:
		if !p.Until.IsZero() {
			log = log.With("until", p.Until)
		}
		log.Info("paused", "by", event.Actor, "reason", p.Reason)
	case *journal.PauseCleared:
		log.Info("no longer paused", "by", event.Actor, "reason", p.Reason)
	case *journal.OperatorStarted:
		if r.state.Clock.Wrong() {
			log.Warn("this machine's clock and the Kubernetes API's are far apart: every age counts anew; set the one that is wrong",
				"the_api_is_ahead_by", time.Duration(*p.ClockSkew))
		}
	case *journal.ClockJumped:
		log.Warn("the machine's clock was set, or the machine slept: ages stay as they are, and EKCO settles before it acts",
			"by", time.Duration(p.By))
	case *journal.APILost:
		log.Warn("the Kubernetes API does not answer", "error", p.Error)
	case *journal.APIRecovered:
		log.Info("the Kubernetes API answers again", "lost_at", p.LostAt)
	}
}
