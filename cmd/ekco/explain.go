package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func newExplainCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain [NAME|KIND/NAME|ACTION]",
		Short: "Explain a state or a problem, and what to do",
		Long: `Without an argument it lists all problems: what is wrong, since when, what to do and
which command to run; then what EKCO will do automatically.
With the name of a node or thing, KIND/NAME or the id of an action it shows the state
and since when, the events that caused it, the open actions and what they wait for,
what stops EKCO from acting, what another program keeps changing, how the last actions
ended, and which commands apply. Of an action that has ended it shows the steps.
If no operator runs, it shows what is in the journal.`,
		Example: `  ekco explain
  ekco explain worker-2
  ekco explain node/worker-2
  ekco explain purge-worker-2-57-3f9a`,
		Args: explainArgument.allowOne,
		ValidArgsFunction: completeFirst(func(cmd *cobra.Command) []string {
			status := a.statusForCompletion(cmd)
			return append(thingNames(status), actionNames(status)...)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withWarned(cmd.Context(), cmd, func(backend *connection) error {
				return a.explain(cmd.Context(), backend, slices.Concat(args, []string{""})[0], output)
			})
		},
	}
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}

var explainArgument = argument{name: "the name of a node or thing, or an action's id"}

// explainableNames returns the possible arguments of explain.
func explainableNames(status api.Status) []string {
	return slices.Concat(statusNames(status), thingNames(status), actionNames(status))
}

func actionNames(status api.Status) (ids []string) {
	for _, action := range status.Actions {
		ids = append(ids, action.ID)
	}
	return ids
}

// explain explains the node, thing or action with this name. Without a name it explains all problems.
func (a *app) explain(ctx context.Context, backend *connection, word, output string) error {
	status, err := backend.Status(ctx)
	if err != nil {
		return err
	}
	api.Judge(&status, a.words.Verb)
	options := view.Options{Color: a.useColor(), Lookup: lookup(ctx, backend), Origin: firstEventOf(ctx, backend), Words: a.words}
	if word == "" {
		if output != "text" {
			return view.Value(a.stdout, problemsOf(status), output)
		}
		return view.Problems(a.wrappedStdout(output), status, options)
	}
	requests := resolveName(status, word)
	if len(requests) == 0 {
		return a.explainEnded(ctx, backend, status, word, options)
	}
	var things []api.ThingExplanation
	for _, request := range requests {
		explained, err := backend.ExplainThing(ctx, request)
		if err != nil {
			return err
		}
		for i := range explained {
			addEndings(ctx, backend, &explained[i])
		}
		things = append(things, explained...)
	}
	if output != "text" {
		return view.Value(a.stdout, things, output)
	}
	return view.Things(a.wrappedStdout(output), things, status, options)
}

// maxEndings is the maximum number of ended actions that explain reads for a thing.
const maxEndings = 20

// addEndings adds the last ended action of each kind, because the state has only endings that later decisions need.
func addEndings(ctx context.Context, backend api.Backend, thing *api.ThingExplanation) {
	subject := thing.Subject
	query := journal.Query{
		Kind: subject.Kind, Name: subject.Name, UID: subject.UID, Types: []journal.Type{journal.TypeActionEnded}, Reverse: true, Limit: maxEndings,
	}
	for event, err := range backend.Events(ctx, query, false) {
		if err != nil {
			return // the rest of the explanation is still true
		}
		ended, is := event.Decoded().Body.(*journal.ActionEnded)
		kind := kindOf(ctx, backend, event.Action)
		if _, known := thing.Last[kind]; known || kind == "" || !is {
			continue
		}
		if thing.Last == nil {
			thing.Last = map[journal.ActionKind]fsm.Ending{}
		}
		thing.Last[kind] = fsm.Ending{Action: event.Action, Outcome: ended.Outcome, Seq: event.Seq, At: event.Time}
	}
}

// problems is the output of explain without an argument as JSON or YAML.
type problems struct {
	Verdict  api.Overall    `json:"verdict"`
	Problems []api.Problem  `json:"problems"`
	Next     []fsm.Upcoming `json:"next"`
}

func problemsOf(status api.Status) problems {
	return problems{status.Verdict, status.Problems, status.Next}
}

// resolveName resolves a name on the command line: an open action, a node, every other thing of that name, or
// KIND/NAME.
func resolveName(status api.Status, word string) (requests []api.ThingRequest) {
	if slices.ContainsFunc(status.Actions, func(r journal.ActionRecord) bool { return r.ID == word }) {
		return []api.ThingRequest{{Action: word}}
	}
	if isNode(status, word) {
		return []api.ThingRequest{{Kind: fsmnode.Machine, Name: word}}
	}
	for _, thing := range status.Things {
		if thing.Name == word {
			requests = append(requests, api.ThingRequest{Kind: thing.Machine, Name: word})
		}
	}
	if kind, name, both := strings.Cut(word, "/"); len(requests) == 0 && both && kind != "" && name != "" {
		return []api.ThingRequest{{Kind: kind, Name: name}}
	}
	slices.SortFunc(requests, func(a, b api.ThingRequest) int { return cmp.Compare(a.Kind, b.Kind) })
	return slices.Compact(requests)
}

// explainEnded shows the steps of an action that has ended.
func (a *app) explainEnded(ctx context.Context, backend *connection, status api.Status, word string, options view.Options) error {
	tree, err := view.NewHistory(a.wrappedStdout(""), "tree", options)
	if err != nil {
		return err
	}
	found := false
	for event, err := range backend.Events(ctx, journal.Query{Action: word}, false) {
		if err != nil {
			return err
		}
		found = true
		if err := tree.Event(event); err != nil {
			return err
		}
	}
	if !found {
		near := fsm.DidYouMean(fsm.Near(word, slices.Values(slices.Concat(explainableNames(status), actionsKnown(ctx, backend)))))
		return fmt.Errorf("EKCO knows no node, component or action %q%s%w", word, near, api.Hidden(api.ErrNotFound))
	}
	return tree.Flush()
}

// firstEventOf returns a function that finds the first event of an action.
func firstEventOf(ctx context.Context, backend api.Backend) func(string) (journal.Event, bool) {
	return func(action string) (journal.Event, bool) {
		for event, err := range backend.Events(ctx, journal.Query{Action: action, Limit: 1}, false) {
			return event, err == nil
		}
		return journal.Event{}, false
	}
}
