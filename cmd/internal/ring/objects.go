package ring

import (
	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// WithObjects adds the action and the sources of a capability for a few objects that EKCO may only read by name. The
// sources poll the objects, and read them at once after a change by EKCO. off is the setting that switches the
// capability off, or "".
func WithObjects[F fsm.ObjectFacts[F]](c Capability, is object.Object[F], off string, action func(cluster kube.API, changed func()) actions.Definition, subjects ...journal.Subject) Capability {
	nudge, machine := &observers.Nudge{}, c.Fsm.Machine.Name()
	c.Actions = func(cluster kube.API) []actions.Definition { return []actions.Definition{action(cluster, nudge.Look)} }
	c.Sources = func(s *fsm.State) []observers.Source {
		return nudge.Over(observers.PollEach(subjects, is.Read, observers.PolledOne[F]{
			Machine: machine, UID: is.UID, Known: fsm.KnownObjects[F](s, machine), Off: off,
		})...)
	}
	return c
}
