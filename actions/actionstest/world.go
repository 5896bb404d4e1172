package actionstest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// ActionID is the id of the tested action.
const ActionID = "a-1"

// World is the journal of one action. It outlives the runners in a test.
type World struct {
	T     *testing.T
	Store *memory.Store
	// BeforeRequest, if set, is called before each request.
	BeforeRequest func()
	// Terms has the terms of the kinds, as in [fsm.TermsByKind]. A kind without terms obeys [Rules].
	Terms map[journal.ActionKind]fsm.Terms

	logMu  sync.Mutex
	logged strings.Builder
}

// NewWorld returns a world with a new journal. Call it in a bubble of [testing/synctest].
func NewWorld(t *testing.T) *World { return &World{T: t, Store: memory.New()} }

// InBubble runs a test, or a part of a test, with a fake clock.
func InBubble(t *testing.T, test func(w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(NewWorld(t))
	})
}

// Pass advances the bubble's time, and waits until all goroutines are blocked.
func (*World) Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Write implements io.Writer for the log.
func (w *World) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.logged.Write(p)
}

// Logged returns the log so far.
func (w *World) Logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.logged.String()
}

// Config returns the config of a runner for these kinds. All rules of policy pass.
func (w *World) Config(definitions []actions.Definition) actions.Config {
	rules, kinds := Rules(), make([]actions.Kind, 0, len(definitions))
	for _, definition := range definitions {
		terms, known := w.Terms[definition.Kind]
		if !known {
			terms.Rules = Rules()
		}
		rules = append(rules, terms.Rules...)
		kinds = append(kinds, actions.Kind{Definition: definition, Rules: terms.Rules, Domains: terms.Domains})
	}
	return actions.Config{
		Store: w.Store, Kinds: kinds,
		Log:        slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Preflights: Policy(actions.Pass(), rules...),
	}
}

// Append writes an event of the action about node w1 to the journal.
func (w *World) Append(actor string, payload journal.Payload, kind journal.Type) {
	w.T.Helper()
	w.AppendAbout(journal.NodeSubject("w1", ""), actor, payload, kind)
}

// AppendAbout writes an event of the action about the subject to the journal.
func (w *World) AppendAbout(subject journal.Subject, actor string, payload journal.Payload, kind journal.Type) {
	w.T.Helper()
	_, err := w.Store.Append(w.T.Context(), journal.Draft{
		Type: kind, Subject: subject, Action: ActionID, Actor: actor, Payload: payload,
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Request writes a request to the journal.
func (w *World) Request(subject journal.Subject, request journal.ActionRequested) {
	w.T.Helper()
	if w.BeforeRequest != nil {
		w.BeforeRequest()
	}
	w.AppendAbout(subject, "operator", request, journal.TypeActionRequested)
}

// Occupied returns the locks that the open action has now, with the steps that have them.
func (w *World) Occupied() map[string]string {
	w.T.Helper()
	record := w.Record()
	return fsm.Occupied(&record, time.Now())
}

// Record folds the open action from the journal, as EKCO does at its start.
func (w *World) Record() journal.ActionRecord {
	w.T.Helper()
	for _, record := range w.Folded().OpenActions() {
		if record.ID == ActionID {
			return record
		}
	}
	w.T.Fatalf("action %s is not open", ActionID)
	return journal.ActionRecord{}
}

// Folded folds the journal.
func (w *World) Folded() *fsm.State {
	w.T.Helper()
	state := fsm.NewState()
	for event, err := range w.Store.Read(w.T.Context(), journal.Query{}) {
		if err != nil {
			w.T.Fatal(err)
		}
		state.Apply(event)
	}
	if len(state.Problems) > 0 {
		w.T.Fatalf("the journal does not fold: %q", state.Problems)
	}
	return state
}
