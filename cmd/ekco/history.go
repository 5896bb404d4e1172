package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
)

func newHistoryCommand(a *app) *cobra.Command {
	flags := historyFlags{words: a.words}
	cmd := &cobra.Command{
		Use:   "history [NODE|KIND/NAME]",
		Short: "Show what happened, newest last",
		Long: `Shows what EKCO saw, decided and did, one event per line, newest last; -o tree
groups each action's steps with their durations and outcomes, and names its cause;
--summary shows one line for each action, refusal, pause and lost node. Both show a rollout
(the same change on several nodes) as one entry with a line for each action.
With NODE or KIND/NAME it shows the events of that node or thing alone; --node also shows the
events of the pods on the node.

Without a name, --node, --component, --action, --type, --since and --limit it shows the
last 24 hours, and says on standard error if there is more; --since all shows
everything. --limit N shows the newest N events, or with --reverse the newest
first. Times are in UTC; --local shows and reads them in the time zone of this
machine, or in that of the environment variable TZ.

` + wrapHelp(`--since and --until take a duration before now (90s, 24h, 7d, 1w), a date (2026-11-21,
yesterday), a time (2026-11-21T08:00:00Z, 2026-11-21 08:00) or a time of day (00:09), which means the latest one. --type takes names and patterns like "step.*",
and --component families of types, separated by commas: `+inWords(a.words.Components())+`.`),
		Example: `  ekco history --node worker-2
  ekco history worker-2
  ekco history --since 1h -o tree
  ekco history --since yesterday --summary
  ekco history --since yesterday --until 00:09
  TZ=Europe/Berlin ekco history --since 02:30 --local
  ekco history --type 'action.*,step.failed' --follow
  ekco history --since all -o json | jq .type`,
		Args:              thingArgument.allowOne,
		ValidArgsFunction: completeFirst(a.thingNames),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				if flags.thing, err = readThing(cmd, args[0]); err != nil {
					return err
				}
			}
			if flags.local {
				if flags.zone, err = a.localZone(); err != nil {
					return err
				}
			}
			flags.limited = cmd.Flags().Changed("limit")
			query, err := flags.query(a.now())
			if err != nil {
				return err
			}
			return a.showHistory(cmd, flags, query)
		},
	}
	flags.register(cmd)
	complete(cmd, "node", a.nodeNames)
	complete(cmd, "action", a.actionsOfHistory)
	complete(cmd, "type", eventTypes)
	complete(cmd, "component", func(*cobra.Command) []string { return flags.componentNames() })
	return cmd
}

// showHistory streams the events of the query.
func (a *app) showHistory(cmd *cobra.Command, flags historyFlags, query journal.Query) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	return a.withWarned(ctx, cmd, func(backend *connection) error {
		return a.showEvents(ctx, backend, flags, query)
	})
}

func (a *app) showEvents(ctx context.Context, backend *connection, flags historyFlags, query journal.Query) error {
	if err := a.hintAtOlder(ctx, backend, flags, query); err != nil {
		return err
	}
	if err := a.hintAtUnknown(ctx, backend, flags); err != nil {
		return err
	}
	printer, err := view.NewHistory(a.wrappedStdout(flags.outputFormat()), flags.outputFormat(), view.Options{
		Color: a.useColor(), Live: flags.follow, Lookup: lookup(ctx, backend), Origin: firstEventOf(ctx, backend), Words: a.words, Zone: flags.zone, Now: a.now(),
	})
	if err != nil {
		return usageError{err}
	}
	stream := &historyStream{
		backend: backend, selects: flags.filterBackend, printer: printer, last: query.After,
		sign: &statusLine{w: a.stderr, terminal: a.stderrTerminal && a.stdoutTerminal},
	}
	if flags.newest() {
		err = eachOfNewest(ctx, flags.filterBackend(ctx, backend), query, stream.event)
	} else {
		err = stream.events(ctx, query, false)
	}
	if err == nil && flags.follow {
		query.Limit, query.Reverse = 0, false
		err = a.followHistory(ctx, stream, query)
	}
	if err != nil {
		return err
	}
	return printer.Flush()
}

// historyStream prints the events of a backend, and remembers the last printed event.
type historyStream struct {
	backend *connection
	// selects returns a backend with only the events that the flags select.
	selects func(context.Context, api.Backend) filteredBackend
	printer view.History
	last    uint64
	sign    *statusLine
}

func (s *historyStream) event(event journal.Event) error {
	s.last = max(s.last, event.Seq)
	return s.sign.printAbove(func() error { return s.printer.Event(event) })
}

// streamError is an error of reading events, not of printing them.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

func (s *historyStream) events(ctx context.Context, query journal.Query, follow bool) error {
	for event, err := range s.selects(ctx, s.backend.Backend).Events(ctx, query, follow) {
		if err != nil {
			return streamError{err}
		}
		if err := s.event(event); err != nil {
			return err
		}
	}
	return nil
}

// followHistory prints new events until the command is interrupted, also across restarts of the operator.
func (a *app) followHistory(ctx context.Context, stream *historyStream, query journal.Query) error {
	var reconnects reconnectLimit
	for {
		query.After = stream.last
		settled := a.watchTrouble(ctx, stream.backend.Backend, stream.sign)
		unwatched := watchProgress(ctx, stream.backend.Backend, query, stream.sign)
		err := stream.events(ctx, query, true)
		unwatched()
		settled()
		_, lost := errors.AsType[streamError](err)
		if !lost || ctx.Err() != nil || !stream.backend.running || errors.Is(err, api.ErrCrowded) {
			return err
		}
		_, _ = fmt.Fprintf(a.stderr, "ekco: lost the connection to the operator: %s; waiting until it answers again\n", view.Clean(err.Error()))
		back, dialErr := reconnects.await(ctx, stream.last, err, stream.backend.redial)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user interrupted it
		case dialErr != nil:
			return dialErr
		}
		stream.backend.close()
		stream.backend.Backend, stream.backend.close = back, back.Close
		_, _ = fmt.Fprintln(a.stderr, "ekco: an operator answers again")
	}
}

// eachOfNewest passes the newest events of the query to take, oldest first. It has up to query.Limit events in memory.
func eachOfNewest(ctx context.Context, backend api.Backend, query journal.Query, take func(journal.Event) error) error {
	query.Reverse = true
	var events []journal.Event
	for event, err := range backend.Events(ctx, query, false) {
		if err != nil {
			return err
		}
		events = append(events, event)
	}
	for _, event := range slices.Backward(events) {
		if err := take(event); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns a function that finds one event by its sequence number.
func lookup(ctx context.Context, backend api.Backend) func(uint64) (journal.Event, bool) {
	return func(seq uint64) (journal.Event, bool) {
		for event, err := range backend.Events(ctx, journal.Query{After: seq - 1, Before: seq + 1, Limit: 1}, false) {
			return event, err == nil && event.Seq == seq
		}
		return journal.Event{}, false
	}
}
