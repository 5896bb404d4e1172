package loadbalancer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// sum has data that is computed from all load balancers. It is cached until one of them changes.
type sum struct {
	// primaries are the addresses to which load balancers must forward, sorted by the names of the nodes. since is the
	// last event with facts about one of these nodes.
	primaries []string
	since     uint64
	// overwritten is the end of the last change-load-balancer action that wrote load balancers; zero for none. The
	// primaries that it wrote may be out of date now.
	overwritten uint64
	// waiting are the load balancers to update, in the order of the updates.
	waiting []*fsm.Thing
	// verified is the number of load balancers that were verified with the wanted configuration and whose HAProxy has
	// not restarted since. lost are the load balancers with balancer.Worse: their change may be why the node was lost.
	verified int
	lost     []*fsm.Thing
	rollout  rollout
	// upToDate are the load balancers that are up to date. oldestCheck is the load balancer whose last check is the
	// oldest; nil for none.
	upToDate    []*fsm.Thing
	oldestCheck *fsm.Thing
	// list is the thing of the ConfigMap; nil if EKCO knows none. wantedList is the wanted content of the ConfigMap.
	// behind are the load balancers of ready nodes that are not up to date.
	list       *fsm.Thing
	wantedList string
	behind     []*fsm.Thing
}

// maxOpenUpdates is the maximum number of open updates. It is greater than the maximum number of pods, because some
// updates only wait until HAProxy has reloaded its files. It is limited because all open actions must fit into the
// mirror.
const maxOpenUpdates = 32

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
			answering = answering || b.Facts.Primary && b.WasReady && b.At != "" && b.apiServerAnswers()
		}
		owners, listed := ownersOf(all), map[string]bool{}
		var members []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b := of(all[name])
			// A former primary stays in the list while its API server answers and no primary's API server does.
			at := b.backend(name, owners)
			if at != "" && !listed[at] && b.WasReady && (b.Facts.Primary || !answering && b.WasPrimary && b.Facts.Asked && b.apiServerAnswers()) {
				s.primaries, s.since, listed[at] = append(s.primaries, at), max(s.since, all[name].FactsSeq), true
			}
			members = append(members, listEntry(name, b.Facts))
		}
		s.wantedList, s.overwritten = formatList(members), lastOverwrite(w)
		s.fillLists(w, all)
		return s
	}).(*sum)
}

// ownersOf returns the name of the node that has each address now.
func ownersOf(all map[string]*fsm.Thing) map[string]string {
	owners := map[string]string{}
	for name, t := range all {
		if address := of(t).Facts.Address; address != "" {
			owners[address] = name
		}
	}
	return owners
}

// backend returns the address at which HAProxy reaches the API server of the node with this name, or "". It does not
// return a former address of the node that another node has now.
func (b *balancer) backend(name string, owners map[string]string) string {
	if owner, is := owners[b.At]; !is || owner == name || b.At == b.Facts.Address {
		return b.At
	}
	if b.Facts.Asked && !slices.Contains(b.Facts.Answers, b.Facts.Address) {
		return ""
	}
	return b.Facts.Address
}

func (s *sum) fillLists(w *fsm.World, all map[string]*fsm.Thing) {
	open := openOn(w)
	for _, t := range all {
		b := of(t)
		if s.servesWanted(w, t) && !hasRestarted(t) {
			s.verified++
		}
		if b.Worse {
			s.lost = append(s.lost, t)
		}
		switch {
		case !b.Facts.Ready:
		case open[t.Name] == nil && s.isUpToDate(w, t):
			if s.upToDate = append(s.upToDate, t); s.oldestCheck == nil || checkedBefore(t, s.oldestCheck) {
				s.oldestCheck = t
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
		return cmp.Or(comparePrimaries(a, b), cmp.Compare(lastTriedSeq(a), lastTriedSeq(b)), cmp.Compare(a.Name, b.Name))
	})
}

// isSettled reports whether all load balancers are up to date, except on nodes that are not ready or paused.
func (s *sum) isSettled(w *fsm.World) bool {
	return len(s.primaries) > 0 && !slices.ContainsFunc(s.behind, func(t *fsm.Thing) bool { return !isPaused(w, t) })
}

// countVerified returns the number of verified load balancers, which determines the size of the next batch. While a
// node is lost after its change it returns 0: if a person pauses that node, the rollout continues one by one, with
// checks and trials.
func (s *sum) countVerified() int {
	if len(s.lost) > 0 {
		return 0
	}
	return s.verified
}

// comparePrimaries sorts primaries after all other nodes.
func comparePrimaries(a, b *fsm.Thing) int {
	switch isA, isB := of(a).Facts.Primary, of(b).Facts.Primary; {
	case isA == isB:
		return 0
	case isA:
		return 1
	}
	return -1
}

// nextCheck returns the load balancer to check next, or nil. It skips load balancers on paused nodes.
func (s *sum) nextCheck(w *fsm.World) (next *fsm.Thing) {
	if s.oldestCheck == nil || !isPaused(w, s.oldestCheck) {
		return s.oldestCheck
	}
	for _, t := range s.upToDate {
		if !isPaused(w, t) && (next == nil || checkedBefore(t, next)) {
			next = t
		}
	}
	return next
}

// checkedBefore reports whether the last check of a was before the last check of b.
func checkedBefore(a, b *fsm.Thing) bool {
	return cmp.Or(lastCheckedAt(a).Compare(lastCheckedAt(b)), cmp.Compare(a.Name, b.Name)) < 0
}

// openOn returns the open actions that change load balancers, by the name of the node.
func openOn(w *fsm.World) map[string]*journal.ActionRecord {
	open := map[string]*journal.ActionRecord{}
	for _, rec := range w.Actions {
		if rec.Kind == journal.ActionUpdateLoadBalancer || rec.Kind == journal.ActionRestartLoadBalancer {
			open[rec.Subject.Name] = rec
		}
	}
	return open
}

// lastTriedSeq returns the event that ended the last update of the load balancer, or 0.
func lastTriedSeq(t *fsm.Thing) uint64 {
	if last := t.Last[journal.ActionUpdateLoadBalancer]; last != nil {
		return last.Seq
	}
	return 0
}

func (s *sum) wantedState(w *fsm.World, t *fsm.Thing) journal.LoadBalancerInput {
	p, b := policyOf(w.Policy), of(t)
	return journal.LoadBalancerInput{
		NodeUID: b.Facts.NodeUID, Address: b.Facts.Address, Primaries: s.primaries, Image: p.Image, Layout: p.Layout, Version: b.wantedVersion(p),
	}
}

// rewriteAfter returns the last event that requires EKCO to write all load balancers again; zero for none.
func (s *sum) rewriteAfter() uint64 { return max(s.listChanged(), s.overwritten) }

// listChanged returns the last change of the ConfigMap that requires this (see rewriteAfter); zero for none.
func (s *sum) listChanged() uint64 {
	if s.list == nil {
		return 0
	}
	return listOf(s.list).Since
}

// lastOverwrite returns the event that ended the last change-load-balancer action that wrote load balancers, or zero.
// That action writes the primaries at the time of its request.
func lastOverwrite(w *fsm.World) uint64 {
	t := w.Things[fsm.Key(journal.Kubeconfigs)]
	if t == nil || t.Machine() != ChangeMachine {
		return 0
	}
	return kubeconfigsOf(t).Wrote
}

// servesWanted reports whether an action that was requested after [sum.rewriteAfter] has verified that HAProxy forwards
// to the wanted primaries.
func (s *sum) servesWanted(w *fsm.World, t *fsm.Thing) bool {
	proved := of(t).Proved
	return proved != nil && sameConfig(proved.Input, s.wantedState(w, t)) && proved.Asked >= s.rewriteAfter()
}

// mustWrite reports whether the configuration must be written again: it was not verified as wanted, or HAProxy has
// restarted since, perhaps with a changed file. If the manifest must change too, a restart does not count, because the
// action for the manifest also verifies the configuration.
func (s *sum) mustWrite(w *fsm.World, t *fsm.Thing) bool {
	return !s.servesWanted(w, t) || hasRestarted(t) && of(t).hasWantedManifest(policyOf(w.Policy))
}

// isUpToDate reports whether the load balancer is up to date: it was verified as wanted, and HAProxy has not restarted
// since.
func (s *sum) isUpToDate(w *fsm.World, t *fsm.Thing) bool {
	return s.servesWanted(w, t) && of(t).hasWantedManifest(policyOf(w.Policy)) && !hasRestarted(t) && !of(t).Worse
}

// hasWantedManifest reports whether an action has verified that HAProxy runs with the wanted manifest.
func (b *balancer) hasWantedManifest(p Policy) bool {
	return b.Proved.Image == p.Image && (b.Proved.Version == b.wantedVersion(p) || b.Proved.Version == p.TCPVersion)
}

func (b *balancer) wantedVersion(p Policy) string {
	if b.RefusesAnonymous {
		return p.TCPVersion
	}
	return p.Version
}

// hasRestarted reports whether HAProxy was restarted or ended after it was verified, so that its files may have
// changed. In facts from before the end of the verification, only a later start counts. In newer facts any other start
// counts, because a clock may have been set back.
func hasRestarted(t *fsm.Thing) bool {
	b := of(t)
	if b.Proved == nil || b.Proved.Started.IsZero() {
		return false
	}
	return b.Facts.Started.After(b.Proved.Started) || t.FactsSeq > b.Proved.Seq && !b.Facts.Started.Equal(b.Proved.Started)
}
