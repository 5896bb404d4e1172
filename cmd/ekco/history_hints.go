package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// hintAtOlder prints a hint to standard error if older events exist outside the default window.
func (a *app) hintAtOlder(ctx context.Context, backend api.Backend, flags historyFlags, query journal.Query) error {
	if !flags.defaultWindow() || query.Since.IsZero() {
		return nil
	}
	older := journal.Query{Until: query.Since, Limit: 1}
	for _, err := range backend.Events(ctx, older, false) {
		if err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stderr, "Events before %s are not shown; --since all shows them.\n", query.Since.UTC().Format(time.RFC3339))
		return err
	}
	return nil
}

// hintAtUnknown prints a hint to standard error if the journal does not know the given node, thing or action.
func (a *app) hintAtUnknown(ctx context.Context, backend api.Backend, flags historyFlags) error {
	about := ""
	if flags.thing != (api.ThingRequest{}) {
		about = flags.thing.Kind + "/" + flags.thing.Name
	}
	ofThing := historyFlags{thing: flags.thing}.filterBackend(ctx, backend)
	for _, asked := range []struct {
		what, name string
		from       api.Backend
		query      journal.Query
		known      func() []string
	}{
		{"node ", flags.node, backend, journal.Query{Node: flags.node, Limit: 1}, func() []string {
			status, err := backend.Status(ctx)
			if err != nil {
				return nil // no suggestion is possible
			}
			return nodeNames(status, func(api.NodeStatus) bool { return true })
		}},
		{"action ", flags.action, backend, journal.Query{Action: flags.action, Limit: 1}, func() []string { return actionsKnown(ctx, backend) }},
		{"", about, ofThing, journal.Query{Name: flags.thing.Name, Limit: 1}, func() []string {
			status, err := backend.Status(ctx)
			if err != nil {
				return nil
			}
			return thingNames(status)
		}},
	} {
		if asked.name == "" {
			continue
		}
		found, err := hasAny(asked.from.Events(ctx, asked.query, false))
		if err != nil {
			return err
		}
		if found {
			continue
		}
		hint := fsm.DidYouMean(fsm.Near(asked.name, slices.Values(asked.known())))
		_, err = fmt.Fprintf(a.stderr, "The journal has nothing about %s%s%s\n", asked.what, view.Clean(asked.name), view.Clean(hint))
		if err != nil {
			return err
		}
	}
	return nil
}

func hasAny(events iter.Seq2[journal.Event, error]) (bool, error) {
	for _, err := range events {
		return err == nil, err
	}
	return false, nil
}
