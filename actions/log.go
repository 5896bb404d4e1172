package actions

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// logEvent logs an event that is on disk, but only the types of events that a worker logs; the loop logs the others.
func (a *run) logEvent(payload journal.Payload) {
	event := journal.Event{Type: journal.TypeOf(payload), Time: a.cfg.Now()}
	if line, said := words.WorkerLine(event, payload); said {
		a.log.Log(context.Background(), line.Level, line.Message, line.Attrs...)
	}
}
