package main

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// filteredBackend is a backend that filters events in ways that a query cannot.
type filteredBackend struct {
	api.Backend
	keeps []func(journal.Event) bool
}

// Events implements [api.Backend]. A limit counts only the events that pass the filter.
func (s filteredBackend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	if len(s.keeps) == 0 {
		return s.Backend.Events(ctx, query, follow)
	}
	limit := query.Limit
	query.Limit = 0
	return func(yield func(journal.Event, error) bool) {
		left := limit
		for event, err := range s.Backend.Events(ctx, query, follow) {
			if err == nil && slices.ContainsFunc(s.keeps, func(keep func(journal.Event) bool) bool { return !keep(event) }) {
				continue
			}
			if !yield(event, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// filterBackend returns a backend that drops events that match the query but not the flags.
func (f historyFlags) filterBackend(ctx context.Context, backend api.Backend) filteredBackend {
	selected := filteredBackend{Backend: backend}
	if slices.ContainsFunc(f.components, f.words.Shares) {
		kinds := &actionKinds{find: func(action string) journal.ActionKind { return kindOf(ctx, backend, action) }}
		selected.keeps = append(selected.keeps, func(e journal.Event) bool { return f.ofComponents(e, kinds) })
	}
	if f.thing != (api.ThingRequest{}) {
		kinds := kindsOf(ctx, backend, f.thing)
		selected.keeps = append(selected.keeps, func(e journal.Event) bool {
			return slices.ContainsFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, e.Subject.Kind) })
		})
	}
	return selected
}

func (f historyFlags) ofComponents(e journal.Event, kinds *actionKinds) bool {
	decoded := e.Decoded()
	kinds.learn(decoded)
	return slices.ContainsFunc(f.components, func(name string) bool { return f.words.Belongs(name, decoded, kinds.of) })
}

// kindsOf returns the kinds of subjects that KIND/NAME may mean: KIND itself, and the kinds that it names as a machine.
func kindsOf(ctx context.Context, backend api.Backend, thing api.ThingRequest) []string {
	kinds := []string{thing.Kind}
	things, err := backend.ExplainThing(ctx, thing)
	if err != nil {
		return kinds // the journal may have events of subjects that EKCO no longer manages
	}
	for _, known := range things {
		kinds = append(kinds, known.Subject.Kind)
	}
	return kinds
}

// actionKinds caches the kinds of actions.
type actionKinds struct {
	known map[string]journal.ActionKind
	find  func(action string) journal.ActionKind
}

// learn reads the kind from the first event of an action.
func (k *actionKinds) learn(e journal.Decoded) {
	if k.known == nil {
		k.known = map[string]journal.ActionKind{}
	}
	if kind := startedKind(e); kind != "" {
		k.known[e.Action] = kind
	}
}

func (k *actionKinds) of(action string) journal.ActionKind {
	kind, known := k.known[action]
	if !known {
		kind = k.find(action)
		k.known[action] = kind
	}
	return kind
}

// kindOf reads the kind of an action from the journal. It returns "" if the journal does not have the action.
func kindOf(ctx context.Context, backend api.Backend, action string) journal.ActionKind {
	query := journal.Query{Action: action, Types: []journal.Type{journal.TypeActionRequested, journal.TypeActionAdopted}, Limit: 1}
	for event, err := range backend.Events(ctx, query, false) {
		if err != nil {
			return ""
		}
		return startedKind(event.Decoded())
	}
	return ""
}

// startedKind returns the action kind if the event begins an action, or "".
func startedKind(e journal.Decoded) journal.ActionKind {
	switch p := e.Body.(type) {
	case *journal.ActionRequested:
		return p.Kind
	case *journal.ActionAdopted:
		return p.Record.Kind
	}
	return ""
}
