package words

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Types returns the event types of a component; nil for an unknown component. Other components can have events of the
// same types; see [Vocabulary.Belongs].
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

// Shares reports whether other components also have events of some of the component's types.
func (v *Vocabulary) Shares(component string) bool {
	return slices.ContainsFunc(v.named(component), func(c Component) bool {
		return c.Machine != "" || slices.ContainsFunc(c.Rows, func(row Row) bool { return row.About != "" })
	})
}

// Belongs reports whether the event belongs to the component. kindOf must return the kind of an action.
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

// named returns the tables with the component's name.
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

// machineOf returns the machine in an event of the engine about a thing, or "" for another event.
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

// policyKind returns the kind of action in an event about a refusal, or "" for another event. Such an event has no
// action.
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
