package main

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// defaultHistoryWindow is how far back history shows events by default.
const defaultHistoryWindow = 24 * time.Hour

type historyFlags struct {
	words *words.Vocabulary
	// thing selects the events of one node or thing; the zero value selects all.
	thing                              api.ThingRequest
	node, action, since, until, output string
	components, types                  []string
	follow, reverse, summary, local    bool
	limit                              int
	// limited is true if the user gave a limit.
	limited bool
	// zone is the time zone for printed and parsed times; nil is UTC.
	zone *time.Location
}

func (f *historyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "only what concerns this node")
	flags.StringSliceVar(&f.components, "component", nil, "only these families of events: "+strings.Join(f.componentNames(), ", "))
	flags.StringVar(&f.action, "action", "", "only this action")
	flags.StringVar(&f.since, "since", "", "from this time on, or \"all\"")
	flags.StringVar(&f.until, "until", "", "before this time")
	flags.StringSliceVar(&f.types, "type", nil, "only these types of events; patterns like step.* are fine")
	flags.BoolVarP(&f.follow, "follow", "f", false, "continue with new events")
	flags.BoolVar(&f.summary, "summary", false, "one line for each action, refusal and pause: how it ended, and how long it took")
	flags.BoolVar(&f.local, "local", false, "show and read times in the time zone of this machine, or of TZ, not in UTC")
	flags.BoolVar(&f.reverse, "reverse", false, "newest first")
	flags.IntVar(&f.limit, "limit", 0, "show only this many events, the newest ones")
	outputFlag(cmd, &f.output, "table", view.HistoryFormats()...)
}

// outputFormat returns the output format.
func (f historyFlags) outputFormat() string {
	if f.summary {
		return "summary"
	}
	return f.output
}

// defaultWindow reports whether no flag restricts the events.
func (f historyFlags) defaultWindow() bool {
	return f.node == "" && f.thing == (api.ThingRequest{}) && len(f.components) == 0 && f.action == "" && f.since == "" && f.until == "" && len(f.types) == 0 && f.limit == 0
}

// newest reports whether to print the newest events, oldest first.
func (f historyFlags) newest() bool { return f.limit > 0 && !f.reverse }

// query returns the query for the flags.
func (f historyFlags) query(now time.Time) (journal.Query, error) {
	query := journal.Query{Node: f.node, Name: f.thing.Name, Action: f.action, Reverse: f.reverse, Limit: f.limit}
	switch {
	case f.limit < 0, f.limited && f.limit == 0:
		return query, usagef("--limit is %d: want a number above zero", f.limit)
	case f.follow && f.reverse:
		return query, usagef("--follow and --reverse cannot be combined")
	case f.follow && f.until != "":
		return query, usagef("--follow and --until cannot be combined")
	case f.summary && (f.reverse || f.follow || f.output != "table"):
		return query, usagef("--summary cannot be combined with --reverse, --follow or -o")
	case f.local && (f.output == "json" || f.output == "yaml"):
		return query, usagef("-o %s has times as the journal has them, in UTC; leave out --local", f.output)
	case f.output == "tree" && f.reverse:
		return query, usagef("-o tree and --reverse cannot be combined")
	}
	var err error
	if query.Since, err = parseMoment("--since", f.since, now, cmp.Or(f.zone, time.UTC)); err != nil {
		return query, err
	}
	if query.Until, err = parseMoment("--until", f.until, now, cmp.Or(f.zone, time.UTC)); err != nil {
		return query, err
	}
	if !query.Since.IsZero() && !query.Until.IsZero() && !query.Since.Before(query.Until) {
		return query, usagef("--since %s is not before --until %s", f.since, f.until)
	}
	if f.defaultWindow() {
		query.Since = now.Add(-defaultHistoryWindow)
	}
	query.Types, err = f.selectTypes()
	return query, err
}

// selectTypes returns the event types that match both --component and --type. No types means all.
func (f historyFlags) selectTypes() ([]journal.Type, error) {
	if len(f.components) == 0 && len(f.types) == 0 {
		return nil, nil
	}
	family, err := f.componentTypes()
	if err != nil {
		return nil, err
	}
	var selected []journal.Type
	for _, pattern := range orAny(f.types) {
		matched := false
		for _, t := range journal.Types() {
			fits, err := path.Match(pattern, string(t))
			if err != nil {
				return nil, usagef("--type is %q: it is not a pattern: %w", pattern, err)
			}
			matched = matched || fits
			if fits && slices.Contains(family, t) {
				selected = append(selected, t)
			}
		}
		if !matched {
			return nil, usagef("--type is %q, which no event has%s; there are %s", pattern,
				fsm.DidYouMean(fsm.Near(pattern, slices.Values(eventTypes(nil)))), strings.Join(eventTypes(nil), ", "))
		}
	}
	if len(selected) == 0 {
		return nil, usagef("no type of event fits both --component %s and --type %s", strings.Join(f.components, ","), strings.Join(f.types, ","))
	}
	slices.Sort(selected)
	return slices.Compact(selected), nil
}

// componentNames returns the valid values of --component, sorted.
func (f historyFlags) componentNames() []string {
	return slices.Sorted(slices.Values(f.words.Components()))
}

// componentTypes returns the event types of --component, or all types without that flag.
func (f historyFlags) componentTypes() (family []journal.Type, err error) {
	if len(f.components) == 0 {
		return journal.Types(), nil
	}
	for _, name := range f.components {
		if !slices.Contains(f.words.Components(), name) {
			return nil, usagef("--component is %q: want one of %s, or several of them, separated by commas%s", name,
				strings.Join(f.componentNames(), ", "), fsm.DidYouMean(fsm.Near(name, slices.Values(f.componentNames()))))
		}
		family = append(family, f.words.Types(name)...)
	}
	return family, nil
}

func orAny(patterns []string) []string {
	if len(patterns) == 0 {
		return []string{"*"}
	}
	return patterns
}
