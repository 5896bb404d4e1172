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

// Capability describes what EKCO can do with one kind of things. It has one part for each layer; parts may be empty.
type Capability struct {
	// Fsm has the machine, the kinds of action and the rules.
	Fsm fsm.Capability
	// Policy has the settings of the machine, in the type that the machine defines. It may be nil.
	Policy any
	// Words is the message catalog of the capability's events.
	Words words.Component
	// Actions returns the definitions of the kinds of action. In a dry run, all clients of the Kubernetes API refuse
	// changes; they also report an API that does not answer (see kube.Terms). Other clients must refuse changes
	// themselves.
	Actions func(api kube.API) []actions.Definition
	// Lookout searches for the subjects of requests that the journal does not know. It may be nil.
	Lookout func(api kube.API, log *slog.Logger) Lookout
	// Sources returns the sources of facts, which begin with the state in the journal. It must neither change nor keep
	// the state. Facts are recorded in the order of the sources.
	Sources func(s *fsm.State) []observers.Source
}

// Capabilities lists all capabilities, in the order of the output and of the decisions.
type Capabilities []Capability

// Machines returns the parts that fold the journal and decide.
func (all Capabilities) Machines() []fsm.Capability {
	machines := make([]fsm.Capability, 0, len(all))
	for _, c := range all {
		machines = append(machines, c.Fsm)
	}
	return machines
}

// Vocabulary returns the message catalog for all events.
func (all Capabilities) Vocabulary() *words.Vocabulary {
	components := make([]words.Component, 0, len(all))
	for _, c := range all {
		components = append(components, c.words())
	}
	return words.New(components...)
}

// words returns the capability's catalog, together with the names that its other parts define.
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

// Policy returns the engine's policy together with the policies of the capabilities.
func (all Capabilities) Policy(engine fsm.Policy) fsm.Policy {
	for _, c := range all {
		if c.Policy != nil {
			engine = engine.With(c.Fsm.Machine.Name(), c.Policy)
		}
	}
	return engine
}

// kinds combines the definition and the rule set of each kind of action. It returns an error if a kind lacks one of the
// two, because its actions would wait forever.
func (all Capabilities) kinds(api kube.API) ([]actions.Kind, error) {
	terms, err := fsm.TermsByKind(all.Machines()...)
	if err != nil {
		return nil, err
	}
	var kinds []actions.Kind
	done := make(map[journal.ActionKind]bool, len(terms))
	for _, definition := range all.definitions(api) {
		of, decided := terms[definition.Kind]
		switch {
		case !decided:
			return nil, fmt.Errorf("no machine decides on actions of kind %q", definition.Kind)
		case done[definition.Kind]:
			return nil, fmt.Errorf("actions of kind %q are defined twice", definition.Kind)
		}
		done[definition.Kind] = true
		kinds = append(kinds, actions.Kind{Definition: definition, Rules: of.Rules, Domains: of.Domains})
	}
	for _, kind := range slices.Sorted(maps.Keys(terms)) {
		if !done[kind] {
			return nil, fmt.Errorf("actions of kind %q have rules and no definition", kind)
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
