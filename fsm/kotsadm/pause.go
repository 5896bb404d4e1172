package kotsadm

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Meant returns the database for its name, with or without the namespace.
func (machine) Meant(s *fsm.State, name string) *fsm.Thing {
	if !named(name) {
		return nil
	}
	var meant *fsm.Thing
	for _, t := range s.Things {
		if t.Machine() == Machine && (meant == nil || t.FactsSeq > meant.FactsSeq) {
			meant = t
		}
	}
	return meant
}

func named(name string) bool { return name == journal.KotsadmDatabase.Name || name == "kotsadm-rqlite" }

// Nobody implements [fsm.Pausable].
func (machine) Nobody(name string) journal.Subject {
	if named(name) {
		return journal.KotsadmDatabase
	}
	return journal.Subject{Kind: journal.KotsadmDatabase.Kind, Name: name}
}

// Unknown implements [fsm.Pausable].
func (machine) Unknown(_ *fsm.State, name string) error {
	return fmt.Errorf("%w: %q is not %s, or that is not there", fsm.ErrUnknown, name, journal.KotsadmDatabase.Name)
}
