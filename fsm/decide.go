package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActorOperator is the actor of everything [Decide] decides.
const ActorOperator = "operator"

// Decisions is what must happen next.
type Decisions struct {
	// Events are to be appended as one batch.
	Events []journal.Draft
	// Next is when to decide again even if nothing happens; zero means never.
	Next time.Time
}

// Decide says what must happen next in state s at time now. It changes
// nothing. Once its events are folded, deciding again at the same time decides
// nothing more.
func Decide(s *State, p Policy, now time.Time) Decisions {
	r := &round{view: look(s, p, now), open: map[string]work{}, wanted: map[refusalKey]wanted{}}
	r.readActions()
	pauses := r.endPauses()
	cancels := r.cancelObsolete()
	for _, n := range s.Nodes {
		r.decideNode(n)
	}
	r.choosePurge()
	return Decisions{
		Events: slices.Concat(pauses, cancels, r.nodeEvents(), r.refusalEvents()),
		Next:   r.next,
	}
}

// round is one Decide.
type round struct {
	*view
	// rules are those of each kind that was asked about, in their order.
	rules map[journal.ActionKind][]rule
	// open is what is open on each node, by UID.
	open map[string]work
	// plan is the node being looked at. Few are worth keeping.
	plan nodePlan
	// plans are the nodes something happens to.
	plans []*nodePlan
	// candidates may be purged, one of them at a time.
	candidates []*nodePlan
	wanted     map[refusalKey]wanted
	next       time.Time
}

// nodePlan is what this round decides about one node.
type nodePlan struct {
	node   *Node
	state  journal.NodeState
	events []journal.Draft
}

// at makes sure that the next Decide is not later than t.
func (r *round) at(t time.Time) {
	if t.After(r.now) && (r.next.IsZero() || t.Before(r.next)) {
		r.next = t
	}
}

func (r *round) readActions() {
	for _, rec := range r.Actions {
		uid := rec.Subject.UID
		open := r.open[uid]
		switch rec.Kind {
		case journal.ActionClearNode:
			open.clears++
		case journal.ActionPurgeNode:
			open.purges = append(open.purges, rec)
		}
		r.open[uid] = open
	}
}

func (r *round) endPauses() []journal.Draft {
	var events []journal.Draft
	for key, pause := range r.Pauses {
		if !pause.over(r.now) {
			r.at(pause.Until)
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypePauseCleared, Subject: pauseSubject(r.State, key), Cause: pause.Seq, Actor: ActorOperator,
			Payload: journal.PauseCleared{Reason: "it ran out at " + stamp(pause.Until)},
		})
	}
	slices.SortFunc(events, func(a, b journal.Draft) int { return cmp.Compare(a.Subject.Name, b.Subject.Name) })
	return events
}

func (r *round) cancelObsolete() []journal.Draft {
	var events []journal.Draft
	for _, rec := range r.Actions {
		n := r.Nodes[rec.Subject.UID]
		// A dry run leaves what is real to an operator that is none.
		if n == nil || rec.Cancelling != nil || (r.policy.DryRun && !rec.Request.DryRun) {
			continue
		}
		reason := cmp.Or(obsolete(n, rec), r.switchedOff(rec))
		if reason == "" {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionCancelling, Subject: rec.Subject, Action: rec.ID,
			Cause: max(n.FactsSeq, n.GoneSeq), Actor: ActorOperator,
			Payload: journal.ActionCancelling{Reason: reason},
		})
	}
	slices.SortFunc(events, func(a, b journal.Draft) int { return cmp.Compare(a.Action, b.Action) })
	return events
}

// decideNode moves the node's machine to where its facts say it belongs and,
// if the node is lost, sees what may be done about it.
func (r *round) decideNode(n *Node) {
	open := r.open[n.UID]
	target := goal(n, n.State, open)
	if target == n.State && !n.Unreachable() {
		return
	}
	plan := &r.plan
	*plan = nodePlan{node: n, state: n.State}
	for ; target != plan.state; target = goal(n, plan.state, open) {
		if !r.move(plan, target) {
			break
		}
	}
	candidate := false
	if n.Unreachable() && !n.Facts.Flapping {
		r.decideClear(plan)
		candidate = r.mayPurge(n, open)
	}
	if !candidate && len(plan.events) == 0 {
		return
	}
	kept := *plan
	if candidate {
		r.candidates = append(r.candidates, &kept)
	} else {
		r.plans = append(r.plans, &kept)
	}
}

// move takes one step of the machine towards target. It reports false, and
// does nothing, when the table has no way there.
func (r *round) move(plan *nodePlan, target journal.NodeState) bool {
	step := r.cached().node.ways[way{string(plan.state), string(target)}]
	if step == nil {
		return false
	}
	plan.events = append(plan.events, transition(r.view, plan.node, plan.state, step))
	plan.state = journal.NodeState(step.To)
	return true
}

// nodeEvents returns what the plans hold, in the order of the nodes' names.
func (r *round) nodeEvents() []journal.Draft {
	slices.SortFunc(r.plans, func(a, b *nodePlan) int { return compareNodes(a.node, b.node) })
	var events []journal.Draft
	for _, plan := range r.plans {
		events = append(events, plan.events...)
	}
	return events
}

func compareNodes(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// refused returns the first rule that keeps EKCO from acting on the node, and
// notes the refusal; nil when it may act.
func (r *round) refused(n *Node, kind *ActionKind) *rule {
	rules := r.rulesOf(kind)
	for i := range rules {
		rule := &rules[i]
		if rule.refuses(r.view, n, kind) {
			r.refuse(rule, n, kind)
			return rule
		}
	}
	return nil
}

// rulesOf returns the rules that the kind obeys, in the order in which they are
// asked.
func (r *round) rulesOf(kind *ActionKind) []rule {
	if of, ok := r.rules[kind.Name]; ok {
		return of
	}
	if r.rules == nil {
		r.rules = map[journal.ActionKind][]rule{}
	}
	of := slices.DeleteFunc(rules(), func(rule rule) bool { return !kind.obeys(rule.name) })
	r.rules[kind.Name] = of
	return of
}

// actionID returns an id that is readable, new among the open actions, and not
// one that another journal gives an action of the same node.
func (s *State) actionID(kind journal.ActionKind, n *Node) string {
	base := fmt.Sprintf("%s-%s-%d", s.kind(kind).Verb, n.Name, s.Seq)
	if s.Journal.Mark != "" {
		base += "-" + s.Journal.Mark
	}
	id := base
	for i := 2; s.Actions[id] != nil; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	return id
}
