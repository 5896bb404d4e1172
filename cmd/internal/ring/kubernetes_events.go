package ring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// eventRecorder writes Kubernetes Events for administrators who watch an object. It never blocks, and drops an Event if
// the queue is full or a permission is missing; the journal has all events.
type eventRecorder struct {
	kube  kube.API
	words *words.Vocabulary
	log   *slog.Logger
	queue chan words.Note
}

const (
	eventQueue   = 256
	eventTimeout = 5 * time.Second
	// forbiddenPause is how long EKCO drops Kubernetes Events after the answer Forbidden. kURL's RBAC does not allow
	// EKCO to create them, but an administrator may add the permission.
	forbiddenPause = 10 * time.Minute
)

func newEventRecorder(api kube.API, v *words.Vocabulary, log *slog.Logger) *eventRecorder {
	return &eventRecorder{kube: api, words: v, log: log, queue: make(chan words.Note, eventQueue)}
}

// record queues the Kubernetes Event for an event of the journal, if there is one.
func (r *eventRecorder) record(event journal.Decoded) {
	note, said := r.words.Note(event)
	if !said || !kube.HasEvents(note.About) {
		return
	}
	if journal.IsTraced(note.About.UID) {
		note.About.UID = "" // a UID means nothing outside the journal
	}
	select {
	case r.queue <- note:
	default:
	}
}

func (r *eventRecorder) run(ctx context.Context) {
	var pausedUntil time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-r.queue:
			if time.Now().Before(pausedUntil) {
				continue
			}
			if errors.Is(r.write(ctx, next), kube.ErrForbidden) {
				pausedUntil = time.Now().Add(forbiddenPause)
			}
		}
	}
}

func (r *eventRecorder) write(ctx context.Context, next words.Note) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	err := r.kube.RecordEvent(ctx, next.About, kube.Note{Reason: next.Reason, Message: next.Message, Warning: next.Warning, APIVersion: next.APIVersion})
	if err != nil {
		r.log.Debug("a Kubernetes Event was not written", "kind", next.About.Kind, "name", next.About.Name, "error", err)
	}
	return err
}
