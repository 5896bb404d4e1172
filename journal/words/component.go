package words

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Types returns the types of the events among which a component's are; none if there is
// no such component. [Vocabulary.Belongs] tells those of other components apart.
func (v *Vocabulary) Types(component string) []journal.Type {
	var types []journal.Type
	for _, c := range v.named(component) {
		for _, row := range c.Rows {
			types = append(types, row.Type)
		}
		if c.Machine != "" {
			types = append(types, v.engineTypes()...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// Kinds returns the kinds of action that are the component's.
func (v *Vocabulary) Kinds(component string) (kinds []journal.ActionKind) {
	for _, c := range v.named(component) {
		for _, action := range c.Actions {
			kinds = append(kinds, action.Kind)
		}
	}
	return kinds
}

// Shares reports whether some of the component's events are of types that others have
// too.
func (v *Vocabulary) Shares(component string) bool {
	return slices.ContainsFunc(v.named(component), func(c Component) bool {
		return c.Machine != "" || slices.ContainsFunc(c.Rows, func(row Row) bool { return row.About != "" })
	})
}

// Belongs reports whether the event is one of the component's. kindOf says of what kind
// the action of an id is.
func (v *Vocabulary) Belongs(component string, e journal.Decoded, kindOf func(action string) journal.ActionKind) bool {
	return slices.ContainsFunc(v.named(component), func(c Component) bool { return c.has(e, kindOf) })
}

func (c Component) has(e journal.Decoded, kindOf func(action string) journal.ActionKind) bool {
	if machine := machineOf(e.Body); machine != "" && c.Machine != "" {
		return machine == c.Machine
	}
	if slices.ContainsFunc(c.Rows, func(row Row) bool {
		return row.Type == e.Type && (row.About == "" || row.About == e.Subject.Kind)
	}) {
		return true
	}
	if c.Machine == "" {
		return false
	}
	kind := policyKind(e.Body)
	if kind == "" && e.Action != "" {
		kind = kindOf(e.Action)
	}
	return kind != "" && slices.ContainsFunc(c.Actions, func(a Action) bool { return a.Kind == kind })
}

// named returns the tables that make up the component.
func (v *Vocabulary) named(component string) []Component {
	var named []Component
	for _, c := range v.components {
		if component != "" && c.Name == component {
			named = append(named, c)
		}
	}
	return named
}

// engineTypes are those in which the engine tells of things, of what is done to them,
// and of what keeps it from that.
func (v *Vocabulary) engineTypes() []journal.Type {
	var types []journal.Type
	for _, rows := range [][]Row{thingRows, v.requestRows(), actionRows, stepRows} {
		for _, row := range rows {
			types = append(types, row.Type)
		}
	}
	return append(types, journal.TypePolicyRefused, journal.TypePolicyLifted)
}

// machineOf returns the machine that an event of the engine's is about, or "".
func machineOf(payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.ThingObserved:
		return p.Machine
	case *journal.ThingGone:
		return p.Machine
	case *journal.ThingTransitioned:
		return p.Machine
	}
	return ""
}

// policyKind returns the kind of action that an event without one is about, or "".
func policyKind(payload journal.Payload) journal.ActionKind {
	switch p := payload.(type) {
	case *journal.PolicyRefused:
		return p.Kind
	case *journal.PolicyLifted:
		return p.Kind
	case *journal.ActionRefused:
		return p.Kind
	}
	return ""
}
