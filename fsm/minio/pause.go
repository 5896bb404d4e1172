package minio

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Meant implements [fsm.Pausable]. It also finds a name without the namespace: in "minio/ha-minio", the engine takes
// the namespace for the name of the machine and removes it.
func (machine) Meant(s *fsm.State, name string) *fsm.Thing {
	var meant *fsm.Thing
	for _, t := range s.Things {
		if t.Machine() == Machine && (t.Name == name || strings.HasSuffix(t.Name, "/"+name)) && (meant == nil || t.FactsSeq > meant.FactsSeq) {
			meant = t
		}
	}
	return meant
}

func (machine) Nobody(name string) journal.Subject {
	return journal.Subject{Kind: journal.MinioKind, Name: name}
}

func (machine) Unknown(_ *fsm.State, name string) error {
	return fmt.Errorf("%w: there is no MinIO %q; its name is NAMESPACE/ha-minio", fsm.ErrUnknown, name)
}
