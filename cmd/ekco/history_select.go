package main

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// selecting is a backend that leaves out events which a query cannot leave out.
type selecting struct {
	api.Backend
	keeps []func(journal.Event) bool
}

// Events implements [api.Backend]. A limit counts the events that remain.
func (s selecting) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
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

// selects returns a backend that leaves out what the query finds but the flags do not select.
func (f historyFlags) selects(ctx context.Context, backend api.Backend) selecting {
	selected := selecting{Backend: backend}
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

// kindsOf returns the kinds of subjects that KIND/NAME may mean: the kind as given, and the subjects' kinds of that
// machine.
func kindsOf(ctx context.Context, backend api.Backend, thing api.ThingRequest) []string {
	kinds := []string{thing.Kind}
	things, err := backend.ExplainThing(ctx, thing)
	if err != nil {
		return kinds // the journal may still have events of what EKCO no longer knows
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

// learn takes the kind from the first event of an action.
func (k *actionKinds) learn(e journal.Decoded) {
	if k.known == nil {
		k.known = map[string]journal.ActionKind{}
	}
	if kind := beginning(e); kind != "" {
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

// kindOf reads the kind of an action from the journal; "" if it is not there.
func kindOf(ctx context.Context, backend api.Backend, action string) journal.ActionKind {
	query := journal.Query{Action: action, Types: []journal.Type{journal.TypeActionRequested, journal.TypeActionAdopted}, Limit: 1}
	for event, err := range backend.Events(ctx, query, false) {
		if err != nil {
			return ""
		}
		return beginning(event.Decoded())
	}
	return ""
}

// beginning returns the kind of the action that begins with the event, or "".
func beginning(e journal.Decoded) journal.ActionKind {
	switch p := e.Body.(type) {
	case *journal.ActionRequested:
		return p.Kind
	case *journal.ActionAdopted:
		return p.Record.Kind
	}
	return ""
}
