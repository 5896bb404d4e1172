package ring

import (
	"context"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// logEvent logs the events that an administrator needs after an incident: states of nodes, decisions, and reasons why
// EKCO does not act. The runner logs the steps itself.
func (r *Ring) logEvent(event journal.Decoded) {
	line, said := r.words.Line(event)
	if !said {
		return
	}
	log := r.log.With("seq", event.Seq, "node", event.Subject.Node)
	if event.Subject.Node == "" && event.Subject.Name != "" {
		log = r.log.With("seq", event.Seq, strings.ToLower(event.Subject.Kind), event.Subject.Name)
	}
	if event.Action != "" {
		log = log.With("action", event.Action)
	}
	log.Log(context.Background(), line.Level, line.Message, line.Attrs...)
}
