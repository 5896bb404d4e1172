package loadbalancer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// sum is derived from all load balancers of a world.
type sum struct {
	// primaries are the addresses to balance to, ordered by the names of their nodes. since is the
	// last event with facts of one.
	primaries []string
	since     uint64
	// overwritten is the event until which a change-load-balancer action may have written primaries
	// that are out of date now; zero for none.
	overwritten uint64
	// waiting are the load balancers to update, in this order.
	waiting []*fsm.Thing
	// verified is the number of load balancers with the wanted configuration whose HAProxy has not restarted since.
	// lost are those whose change may be why their nodes were lost, and which were not verified after that.
	verified int
	lost     []*fsm.Thing
	rollout  rollout
	// looks are the load balancers in step, look is the one of them whose last check is the oldest; nil for none.
	looks []*fsm.Thing
	look  *fsm.Thing
	// list is the ConfigMap, nil if none is known. says is its wanted content. behind are the load balancers of
	// nodes that are ready, and which are not in step.
	list   *fsm.Thing
	says   string
	behind []*fsm.Thing
}

// atOnce is the maximum number of open updates. It exceeds the limit of pods, since some updates only wait for
// HAProxy to reload. It is small, since open actions are mirrored.
const atOnce = 32

func sumOf(w *fsm.World) *sum {
	return w.Sum(Machine, func() any {
		all := map[string]*fsm.Thing{}
		s := &sum{}
		for _, t := range w.Things {
			switch {
			case t.Machine() != Machine || t.FactsSeq == 0 || t.GoneSeq != 0:
			case of(t) != nil:
				all[t.Name] = t
			case s.list == nil || t.FactsSeq > s.list.FactsSeq:
				s.list = t
			}
		}
		answering := false // whether a primary's API server answers
		for _, t := range all {
			b := of(t)
			answering = answering || b.Facts.Primary && b.WasReady && b.At != "" && b.answers()
		}
		owners, listed := ownersOf(all), map[string]bool{}
		var members []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b := of(all[name])
			// A former primary stays while its API server answers and no primary's does.
			at := b.backend(name, owners)
			if at != "" && !listed[at] && b.WasReady && (b.Facts.Primary || !answering && b.WasPrimary && b.Facts.Asked && b.answers()) {
				s.primaries, s.since, listed[at] = append(s.primaries, at), max(s.since, all[name].FactsSeq), true
			}
			members = append(members, member(name, b.Facts))
		}
		s.says, s.overwritten = formatList(members), overwritten(w)
		s.arrange(w, all)
		return s
	}).(*sum)
}

// ownersOf returns the names of the nodes by their present addresses.
func ownersOf(all map[string]*fsm.Thing) map[string]string {
	owners := map[string]string{}
	for name, t := range all {
		if address := of(t).Facts.Address; address != "" {
			owners[address] = name
		}
	}
	return owners
}

// backend returns the address by which HAProxy reaches the API server of the node of that name, or "". It ignores a
// former address that another node has now.
func (b *balancer) backend(name string, owners map[string]string) string {
	if owner, is := owners[b.At]; !is || owner == name || b.At == b.Facts.Address {
		return b.At
	}
	if b.Facts.Asked && !slices.Contains(b.Facts.Answers, b.Facts.Address) {
		return ""
	}
	return b.Facts.Address
}

// arrange collects the load balancers to update, and the one to check next.
func (s *sum) arrange(w *fsm.World, all map[string]*fsm.Thing) {
	open := openOn(w)
	for _, t := range all {
		b := of(t)
		if s.serves(w, t) && !restarted(t) {
			s.verified++
		}
		if b.Worse {
			s.lost = append(s.lost, t)
		}
		switch {
		case !b.Facts.Ready:
		case open[t.Name] == nil && s.inStep(w, t):
			if s.looks = append(s.looks, t); s.look == nil || lookedBefore(t, s.look) {
				s.look = t
			}
			continue
		case open[t.Name] == nil && s.mustWrite(w, t):
			s.waiting = append(s.waiting, t)
		}
		if b.Facts.Ready {
			s.behind = append(s.behind, t)
		}
	}
	slices.SortFunc(s.waiting, func(a, b *fsm.Thing) int {
		return cmp.Or(comparePrimaries(a, b), cmp.Compare(tried(a), tried(b)), cmp.Compare(a.Name, b.Name))
	})
}

// settled reports whether all load balancers are in step, except on nodes that are not ready or that a person paused.
func (s *sum) settled(w *fsm.World) bool {
	return len(s.primaries) > 0 && !slices.ContainsFunc(s.behind, func(t *fsm.Thing) bool { return !isPaused(w, t) })
}

// trusted is the number of verified load balancers, or 0 while a node is lost: if a person pauses that one, each further
// node is changed alone, with a check and a trial.
func (s *sum) trusted() int {
	if len(s.lost) > 0 {
		return 0
	}
	return s.verified
}

// comparePrimaries puts nodes that are no primaries first.
func comparePrimaries(a, b *fsm.Thing) int {
	switch isA, isB := of(a).Facts.Primary, of(b).Facts.Primary; {
	case isA == isB:
		return 0
	case isA:
		return 1
	}
	return -1
}

// nextLook returns the load balancer that is checked next, nil for none. One that a person paused delays no other.
func (s *sum) nextLook(w *fsm.World) (next *fsm.Thing) {
	if s.look == nil || !isPaused(w, s.look) {
		return s.look
	}
	for _, t := range s.looks {
		if !isPaused(w, t) && (next == nil || lookedBefore(t, next)) {
			next = t
		}
	}
	return next
}

// lookedBefore reports whether the last check of a was before that of b.
func lookedBefore(a, b *fsm.Thing) bool {
	return cmp.Or(looked(a).Compare(looked(b)), cmp.Compare(a.Name, b.Name)) < 0
}

// openOn returns the open actions that change load balancers, by the names of their nodes.
func openOn(w *fsm.World) map[string]*journal.ActionRecord {
	open := map[string]*journal.ActionRecord{}
	for _, rec := range w.Actions {
		if rec.Kind == journal.ActionUpdateLoadBalancer || rec.Kind == journal.ActionRestartLoadBalancer {
			open[rec.Subject.Name] = rec
		}
	}
	return open
}

// tried returns the event that ended the last update.
func tried(t *fsm.Thing) uint64 {
	if last := t.Last[journal.ActionUpdateLoadBalancer]; last != nil {
		return last.Seq
	}
	return 0
}

// wanted returns the wanted load balancer of a node.
func (s *sum) wanted(w *fsm.World, t *fsm.Thing) journal.LoadBalancerInput {
	p, b := policyOf(w.Policy), of(t)
	return journal.LoadBalancerInput{
		NodeUID: b.Facts.NodeUID, Address: b.Facts.Address, Primaries: s.primaries, Image: p.Image, Layout: p.Layout, Version: b.version(p),
	}
}

// rewriteAfter returns the last event after which all load balancers must be written again; zero for none.
func (s *sum) rewriteAfter() uint64 { return max(s.listChanged(), s.overwritten) }

// listChanged returns the last such event of the ConfigMap; zero for none.
func (s *sum) listChanged() uint64 {
	if s.list == nil {
		return 0
	}
	return listOf(s.list).Since
}

// overwritten returns the event that ended the last change-load-balancer action that wrote load
// balancers, with the primaries at the time of its request; zero for none.
func overwritten(w *fsm.World) uint64 {
	t := w.Things[fsm.Key(journal.Kubeconfigs)]
	if t == nil || t.Machine() != ChangeMachine {
		return 0
	}
	return kubeconfigsOf(t).Wrote
}

// serves reports whether HAProxy was verified to balance to the wanted primaries, after the last
// event that requires a rewrite.
func (s *sum) serves(w *fsm.World, t *fsm.Thing) bool {
	proved := of(t).Proved
	return proved != nil && sameConfig(proved.Input, s.wanted(w, t)) && proved.Asked >= s.rewriteAfter()
}

// mustWrite reports whether the configuration must be written: HAProxy does not serve as wanted, or it restarted,
// and another program may have changed the file. If the manifest must change too, that restarts HAProxy and verifies
// both.
func (s *sum) mustWrite(w *fsm.World, t *fsm.Thing) bool {
	return !s.serves(w, t) || restarted(t) && of(t).manifest(policyOf(w.Policy))
}

// inStep reports whether the load balancer was verified as wanted, and HAProxy has not restarted since.
func (s *sum) inStep(w *fsm.World, t *fsm.Thing) bool {
	return s.serves(w, t) && of(t).manifest(policyOf(w.Policy)) && !restarted(t) && !of(t).Worse
}

// manifest reports whether HAProxy was verified to run with the wanted manifest.
func (b *balancer) manifest(p Policy) bool {
	return b.Proved.Image == p.Image && (b.Proved.Version == b.version(p) || b.Proved.Version == p.TCPVersion)
}

// version is the wanted file version of the manifest.
func (b *balancer) version(p Policy) string {
	if b.RefusesAnonymous {
		return p.TCPVersion
	}
	return p.Version
}

// restarted reports whether HAProxy restarted or ended after it was verified: its files may have
// changed. Older facts count only if their start is later. A newer start may seem earlier, if a clock
// was set back.
func restarted(t *fsm.Thing) bool {
	b := of(t)
	if b.Proved == nil || b.Proved.Started.IsZero() {
		return false
	}
	return b.Facts.Started.After(b.Proved.Started) || t.FactsSeq > b.Proved.Seq && !b.Facts.Started.Equal(b.Proved.Started)
}
