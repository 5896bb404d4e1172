package ring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// notes writes Kubernetes Events for what people watch a Node for. It is best
// effort: a full queue or a missing permission costs only the note, never
// time; the journal has it all.
type notes struct {
	kube  kube.API
	log   *slog.Logger
	queue chan pendingNote
}

type pendingNote struct {
	about journal.Subject
	note  kube.Note
}

const (
	noteQueue   = 256
	noteTimeout = 5 * time.Second
	// forbiddenRest is how long notes are dropped after a Forbidden: kURL's
	// RBAC does not let EKCO create Events, and that may change.
	forbiddenRest = 10 * time.Minute
)

func newNotes(api kube.API, log *slog.Logger) *notes {
	return &notes{kube: api, log: log, queue: make(chan pendingNote, noteQueue)}
}

// about queues the note that belongs to an event, if one does.
func (n *notes) about(event journal.Event) {
	note, ok := noteFor(event)
	if !ok || event.Subject.Kind != "Node" {
		return
	}
	subject := event.Subject
	if journal.IsTraced(subject.UID) {
		subject.UID = "" // it says nothing outside of the journal
	}
	select {
	case n.queue <- pendingNote{about: subject, note: note}:
	default:
	}
}

func (n *notes) run(ctx context.Context) {
	var restUntil time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-n.queue:
			if time.Now().Before(restUntil) {
				continue
			}
			if errors.Is(n.write(ctx, next), kube.ErrForbidden) {
				restUntil = time.Now().Add(forbiddenRest)
			}
		}
	}
}

func (n *notes) write(ctx context.Context, next pendingNote) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	err := n.kube.RecordEvent(ctx, next.about, next.note)
	if err != nil {
		n.log.Debug("a Kubernetes Event was not written", "node", next.about.Name, "error", err)
	}
	return err
}

// noteFor says how an event of the journal reads as a Kubernetes Event.
func noteFor(event journal.Event) (kube.Note, bool) {
	payload, err := event.Decode()
	if err != nil {
		return kube.Note{}, false
	}
	switch p := payload.(type) {
	case *journal.NodeTransitioned:
		return kube.Note{
			Reason: "Node" + string(p.To), Warning: p.To != fsmnode.Healthy,
			Message: fmt.Sprintf("%s -> %s: %s", p.From, p.To, p.Reason),
		}, true
	case *journal.PolicyRefused:
		return kube.Note{
			Reason: p.Rule, Warning: true,
			Message: fmt.Sprintf("%s refused: %s", p.Kind, p.Reason),
		}, true
	case *journal.ActionHeld:
		return kube.Note{
			Reason: "ActionHeld", Warning: true,
			Message: fmt.Sprintf("%s waits for %s: %s", event.Action, p.Preflight, p.Reason),
		}, true
	case *journal.ActionStalled:
		return kube.Note{
			Reason: "ActionStalled", Warning: true,
			Message: fmt.Sprintf("%s gave up at step %s: %s; see ekco retry, ekco cancel", event.Action, p.Step, p.Reason),
		}, true
	case *journal.ActionEnded:
		return kube.Note{
			Reason: "ActionEnded", Warning: p.Outcome != journal.OutcomeDone,
			Message: fmt.Sprintf("%s ended: %s %s", event.Action, p.Outcome, p.Reason),
		}, true
	}
	return kube.Note{}, false
}
