package ring

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
	"github.com/replicatedhq/ekco/observers"
)

// Capability is what an EKCO can do about things of one sort, on each floor of the
// house. It may have nothing on a floor.
type Capability struct {
	// Fsm is the machine of the things, with the kinds of action and the rules.
	Fsm fsm.Capability
	// Policy is what the configuration says of them, in the type that the machine
	// defines; nil for nothing.
	Policy any
	// Words are how its events read.
	Words words.Component
	// Actions are what is done for each kind of action. Every client of the Kubernetes
	// API refuses changes in a dry run, and what the API does not answer is noticed as
	// an outage (see kube.Terms). Clients of anything else must refuse changes by
	// themselves.
	Actions func(api kube.API) []actions.Definition
	// Lookout looks for what requests are about that the journal does not know; nil
	// where there is nothing to be looked for.
	Lookout func(api kube.API, log *slog.Logger) Lookout
	// Sources are what is observed, which begins with what the journal knows. The
	// state must neither be changed nor kept. Facts are told in the order of the
	// sources.
	Sources func(s *fsm.State) []observers.Source
}

// Capabilities are all that an EKCO can do. Their order is that in which they are
// shown, and asked for decisions.
type Capabilities []Capability

// Machines returns their parts that fold the journal and decide.
func (all Capabilities) Machines() []fsm.Capability {
	machines := make([]fsm.Capability, 0, len(all))
	for _, c := range all {
		machines = append(machines, c.Fsm)
	}
	return machines
}

// Vocabulary returns the words for all events: theirs, and the engine's own.
func (all Capabilities) Vocabulary() *words.Vocabulary {
	components := make([]words.Component, 0, len(all))
	for _, c := range all {
		components = append(components, c.words())
	}
	return words.New(components...)
}

// words are the capability's own, with what the rest of it says already.
func (c Capability) words() words.Component {
	own := c.Words
	if c.Fsm.Machine != nil {
		own.Machine = c.Fsm.Machine.Name()
	}
	own.Actions = slices.Clip(own.Actions)
	for _, kind := range c.Fsm.Kinds {
		if !slices.ContainsFunc(own.Actions, func(a words.Action) bool { return a.Kind == kind.Name }) {
			own.Actions = append(own.Actions, words.Action{Kind: kind.Name, Verb: kind.Verb, Noun: kind.Machine})
		}
	}
	return own
}

// Policy returns the engine's policy with what is theirs.
func (all Capabilities) Policy(engine fsm.Policy) fsm.Policy {
	for _, c := range all {
		if c.Policy != nil {
			engine = engine.With(c.Fsm.Machine.Name(), c.Policy)
		}
	}
	return engine
}

// kinds joins what is done for each kind of action with the terms on which it runs. One
// that can be decided on and not carried out, or the reverse, is an error: neither would
// show before an action of it waits for ever.
func (all Capabilities) kinds(api kube.API) ([]actions.Kind, error) {
	terms, err := fsm.Standing(all.Machines()...)
	if err != nil {
		return nil, err
	}
	var kinds []actions.Kind
	done := make(map[journal.ActionKind]bool, len(terms))
	for _, definition := range all.definitions(api) {
		of, decided := terms[definition.Kind]
		switch {
		case !decided:
			return nil, fmt.Errorf("nothing decides on actions of kind %q", definition.Kind)
		case done[definition.Kind]:
			return nil, fmt.Errorf("actions of kind %q are defined twice", definition.Kind)
		}
		done[definition.Kind] = true
		kinds = append(kinds, actions.Kind{Definition: definition, Rules: of.Rules, Domains: of.Domains})
	}
	for _, kind := range slices.Sorted(maps.Keys(terms)) {
		if !done[kind] {
			return nil, fmt.Errorf("actions of kind %q can be decided on, and nothing says what they do", kind)
		}
	}
	return kinds, nil
}

func (all Capabilities) definitions(api kube.API) (definitions []actions.Definition) {
	for _, c := range all {
		if c.Actions != nil {
			definitions = append(definitions, c.Actions(api)...)
		}
	}
	return definitions
}

func (all Capabilities) sources(s *fsm.State) (sources []observers.Source) {
	for _, c := range all {
		if c.Sources != nil {
			sources = append(sources, c.Sources(s)...)
		}
	}
	return sources
}
