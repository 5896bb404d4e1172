package ring

import "fmt"

// fate is where an incarnation dies: before or after its nth append to the journal, its nth
// change of the world, or its nth call of the Kubernetes API that changes something.
type fate struct {
	at     string
	n      int
	before bool
}

const (
	dyingAppends = "append"
	dyingChanges = "change"
	dyingEffects = "effect"
)

func (f fate) String() string { return fmt.Sprintf("%s %d before %t", f.at, f.n, f.before) }

// arm makes the incarnation die there. e may be nil unless f is about a change.
func (f fate) arm(e *estate, in *incarnation) {
	switch f.at {
	case dyingAppends:
		in.store.killAt, in.store.before = f.n, f.before
	case dyingChanges:
		e.killAt, e.before = f.n, f.before
	case dyingEffects:
		in.kube.killAt, in.kube.before = f.n, f.before
	}
}

// fates returns all places to die in a run with these counts.
func fates(did map[string]int) (all []fate) {
	for _, at := range []string{dyingAppends, dyingChanges, dyingEffects} {
		for n := 1; n <= did[at]; n++ {
			all = append(all, fate{at, n, true}, fate{at, n, false})
		}
	}
	return all
}
