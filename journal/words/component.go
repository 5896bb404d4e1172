package words

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Types returns the types of events that a component can have; none for an unknown one. [Vocabulary.Belongs] excludes
// events of other components.
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

// Kinds returns the component's kinds of action.
func (v *Vocabulary) Kinds(component string) (kinds []journal.ActionKind) {
	for _, c := range v.named(component) {
		for _, action := range c.Actions {
			kinds = append(kinds, action.Kind)
		}
	}
	return kinds
}

// Shares reports whether some of the component's event types have events of other components too.
func (v *Vocabulary) Shares(component string) bool {
	return slices.ContainsFunc(v.named(component), func(c Component) bool {
		return c.Machine != "" || slices.ContainsFunc(c.Rows, func(row Row) bool { return row.About != "" })
	})
}

// Belongs reports whether the event is one of the component's. kindOf returns the kind of an action.
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

// named returns the tables of the component.
func (v *Vocabulary) named(component string) []Component {
	var named []Component
	for _, c := range v.components {
		if component != "" && c.Name == component {
			named = append(named, c)
		}
	}
	return named
}

// engineTypes returns the engine's event types about things, actions and refusals.
func (v *Vocabulary) engineTypes() []journal.Type {
	var types []journal.Type
	for _, rows := range [][]Row{thingRows, v.requestRows(), actionRows, stepRows} {
		for _, row := range rows {
			types = append(types, row.Type)
		}
	}
	return append(types, journal.TypePolicyRefused, journal.TypePolicyLifted)
}

// machineOf returns the machine that an engine event is about, or "".
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

// policyKind returns the kind of action in an event that belongs to no action, or "".
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
