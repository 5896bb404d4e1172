package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActorOperator is the actor of all events that [Decide] drafts.
const ActorOperator = "operator"

// Decisions is the result of [Decide].
type Decisions struct {
	// Events are the events that the caller must append as one batch.
	Events []journal.Draft
	// Next is when the caller must call Decide again even if there is no new event; zero means never.
	Next time.Time
}

// Decide returns the decisions in state s at time now. It changes nothing. Once its events are folded, another call for
// the same time returns no events.
func Decide(s *State, p Policy, now time.Time) Decisions {
	r := &round{World: NewWorld(s, p, now), newRefusals: map[refusalKey]roundRefusal{}}
	pauses := r.endPauses()
	cancels := r.cancelObsolete()
	want := r.handleWant // allocates the function value only once
	for _, t := range s.Things {
		r.decideThing(t, want)
	}
	r.takeTurns()
	return Decisions{
		Events: slices.Concat(pauses, cancels, r.thingEvents(), r.refusalEvents()),
		Next:   r.next,
	}
}

// round has the data of one call of Decide.
type round struct {
	*World
	// kinds are the kinds of action that this round has used. They are few, so a loop is faster than a map.
	kinds []cachedKind
	// plan has the decisions about the current thing. waits has the actions that the thing wants and whose kind runs
	// one action at a time. For most things both are empty, and plans does not get the plan.
	plan  thingPlan
	waits []waiting
	// plans are the plans that have events, or things that wait.
	plans []*thingPlan
	// candidates has the things that want an action, by kind of action, for kinds that run one action at a time.
	candidates  map[journal.ActionKind][]candidate
	newRefusals map[refusalKey]roundRefusal
	next        time.Time
}

// cachedKind is a kind of action with the rules that it obeys, in the order in which Decide checks them.
type cachedKind struct {
	kind  *ActionKind
	rules []cachedRule
}

// cachedRule is a rule, with its cached answer if the rule is about the whole cluster.
type cachedRule struct {
	*Rule
	isCached, refuses bool
	// For a rule about the whole cluster, noted is the thing with which its refusal was noted; see [round.refuse].
	noted *Thing
}

// thingPlan has the decisions of this round about one thing. state is the thing's state after the events.
type thingPlan struct {
	thing  *Thing
	state  journal.State
	events []journal.Draft
}

// waiting is an action that the current thing wants, of a kind that runs one action at a time.
type waiting struct {
	kind *ActionKind
	want Want
}

// candidate is a thing that wants an action of a kind that runs one action at a time.
type candidate struct {
	plan *thingPlan
	want Want
}

// decideBy makes the next Decide happen no later than t.
func (r *round) decideBy(t time.Time) {
	if t.After(r.Now) && (r.next.IsZero() || t.Before(r.next)) {
		r.next = t
	}
}

func (r *round) endPauses() []journal.Draft {
	var events []journal.Draft
	for key, pause := range r.Pauses {
		if !pauseOver(pause, r.Now) {
			r.decideBy(pause.Until)
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypePauseCleared, Subject: pauseSubject(r.State, key), Cause: pause.Seq, Actor: ActorOperator,
			Payload: journal.PauseCleared{Reason: "it expired at " + Stamp(pause.Until)},
		})
	}
	slices.SortFunc(events, func(a, b journal.Draft) int { return cmp.Compare(PauseKey(a.Subject), PauseKey(b.Subject)) })
	return events
}

func (r *round) cancelObsolete() []journal.Draft {
	var events []journal.Draft
	for _, rec := range r.Actions {
		t := r.Things[Key(rec.Subject)]
		// An EKCO in dry-run mode does not cancel real actions, because they belong to a real operator.
		if t == nil || rec.Cancelling != nil || mustFinish(rec) || (r.Policy.DryRun && !rec.Request.DryRun) {
			continue
		}
		reason := cmp.Or(t.machine.obsolete(t, rec, r.World), r.switchedOff(rec))
		if reason == "" {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionCancelling, Subject: rec.Subject, Action: rec.ID,
			Cause: t.Newest(), Actor: ActorOperator,
			Payload: journal.ActionCancelling{Reason: reason},
		})
	}
	slices.SortFunc(events, func(a, b journal.Draft) int { return cmp.Compare(a.Action, b.Action) })
	return events
}

// mustFinish reports whether EKCO must not cancel the action: it is past its point of no return, or may be past it,
// because this EKCO cannot read one of its events.
func mustFinish(rec *journal.ActionRecord) bool { return rec.PastNoReturn || rec.Unreadable != "" }

// switchedOff returns which setting forbids an action that EKCO requested automatically, or "". It returns "" in a
// command that runs without an operator, because the command's settings may differ from the operator's.
func (w *World) switchedOff(rec *journal.ActionRecord) string {
	kind := w.Kind(rec.Kind)
	switch {
	case w.Policy.Passive, rec.ByPerson():
		return ""
	case kind == nil || kind.SwitchedOff == nil:
		return ""
	}
	return kind.SwitchedOff(w.Policy)
}

// decideThing drafts the transitions of a thing to its goal, and handles the actions that the thing wants.
func (r *round) decideThing(t *Thing, want func(Want)) {
	r.plan, r.waits = thingPlan{thing: t, state: t.State}, r.waits[:0]
	r.moveToGoal(&r.plan)
	t.machine.Wants(t, r.World, want)
	if len(r.waits) == 0 && len(r.plan.events) == 0 {
		return
	}
	kept := r.plan
	r.plans = append(r.plans, &kept)
	for _, waits := range r.waits {
		if r.candidates == nil {
			r.candidates = map[journal.ActionKind][]candidate{}
		}
		r.candidates[waits.kind.Name] = append(r.candidates[waits.kind.Name], candidate{&kept, waits.want})
	}
}

// moveToGoal drafts transitions until the thing is at its goal, or the table has no way to the goal.
func (r *round) moveToGoal(plan *thingPlan) {
	t := plan.thing
	for {
		goal := t.machine.Goal(t, plan.state, r.World)
		if goal == plan.state {
			return
		}
		draft, to, ok := r.Towards(t, plan.state, goal)
		if !ok {
			return
		}
		plan.events, plan.state = append(plan.events, draft), to
	}
}

// Towards drafts the first transition on the way from one state to another, according to the machine's table, and
// returns the state after this transition. It returns false if the table has no way.
func (w *World) Towards(t *Thing, from, goal journal.State) (draft journal.Draft, to journal.State, ok bool) {
	step := t.machine.ways[way{string(from), string(goal)}]
	if step == nil {
		return journal.Draft{}, from, false
	}
	report := step.Report(t, from, w.Now)
	to = journal.State(step.To)
	typ, payload := t.machine.Transitioned(journal.ThingTransitioned{
		Machine: t.Machine(), From: from, To: to, Event: step.Event, Since: report.Since, Reason: report.Reason,
	})
	return journal.Draft{Type: typ, Subject: t.Subject, Cause: report.Cause, Actor: ActorOperator, Payload: payload}, to, true
}

// handleWant drafts the request for an action that the current thing wants, if the action is due and no rule refuses
// it. If only one action of the kind runs at a time, handleWant adds it to waits instead.
func (r *round) handleWant(want Want) {
	if r.Now.Before(want.Due) {
		r.decideBy(want.Due)
		return
	}
	kind := r.kind(want.Kind)
	r.change = want.Change
	switch {
	case kind == nil:
		r.refuse(&cachedRule{Rule: &unknownKind}, r.plan.thing, &ActionKind{Name: want.Kind})
	case r.findRefusal(r.plan.thing, kind) != nil:
	case kind.obeys(RuleOneAtATime):
		r.waits = append(r.waits, waiting{kind, want})
	default:
		r.draftRequest(&r.plan, kind, want)
	}
}

// draftRequest drafts the request for an action, and then the transitions of the thing to its new goal.
func (r *round) draftRequest(plan *thingPlan, kind *ActionKind, want Want) {
	t := plan.thing
	request, cause := t.machine.Request(t, kind, r.World)
	request.Kind, request.DryRun, request.Change = kind.Name, r.Policy.DryRun, t.withPauses(want.Change, r.Now)
	rec := &journal.ActionRecord{
		ID: r.ActionID(kind, t.Subject), Kind: kind.Name, Subject: t.Subject, Status: Requested,
		RequestedBy: ActorOperator, RequestedAt: r.Now, Request: request,
	}
	plan.events = append(plan.events, journal.Draft{
		Type: journal.TypeActionRequested, Subject: t.Subject, Action: rec.ID, Cause: cause, Actor: ActorOperator, Payload: request,
	})
	r.open[t] = append(r.open[t], rec)
	r.noteFirst(rec)
	r.forgetAnswers()
	r.moveToGoal(plan)
}

// takeTurns drafts one request for each kind that runs one action at a time. It chooses the candidate with the earliest
// Rank, and notes the refusals of the others.
func (r *round) takeTurns() {
	for _, name := range slices.Sorted(maps.Keys(r.candidates)) {
		candidates, kind := r.candidates[name], r.Kind(name)
		chosen := slices.MinFunc(candidates, func(a, b candidate) int {
			return cmp.Or(a.want.Rank.Compare(b.want.Rank), compareThings(a.plan.thing, b.plan.thing))
		})
		r.draftRequest(chosen.plan, kind, chosen.want)
		for _, other := range candidates {
			if other.plan != chosen.plan {
				r.change = other.want.Change
				r.findRefusal(other.plan.thing, kind)
			}
		}
	}
}

// thingEvents returns the events of all plans, sorted by the things' names.
func (r *round) thingEvents() []journal.Draft {
	slices.SortFunc(r.plans, func(a, b *thingPlan) int { return compareThings(a.thing, b.thing) })
	var events []journal.Draft
	for _, plan := range r.plans {
		events = append(events, plan.events...)
	}
	return events
}

// findRefusal returns the first rule that refuses the action, and notes the refusal. It returns nil if no rule refuses.
func (r *round) findRefusal(t *Thing, kind *ActionKind) *Rule {
	rules := r.rulesOf(kind)
	for i := range rules {
		if rule := &rules[i]; rule.refusesThing(r.World, t, kind) {
			r.refuse(rule, t, kind)
			return rule.Rule
		}
	}
	return nil
}

// refusesThing reports whether the rule refuses the action. It asks a rule about the whole cluster only once in a
// round.
func (c *cachedRule) refusesThing(w *World, t *Thing, kind *ActionKind) bool {
	if !c.Cluster {
		return c.Refuses(w, t, kind)
	}
	if !c.isCached {
		c.isCached, c.refuses = true, c.Refuses(w, t, kind)
	}
	return c.refuses
}

// forgetAnswers deletes the cached answers of rules, because the action that was just requested may change them.
func (r *round) forgetAnswers() {
	for _, cached := range r.kinds {
		for i := range cached.rules {
			cached.rules[i] = cachedRule{Rule: cached.rules[i].Rule}
		}
	}
}

// kind returns the kind of action with this name, or nil.
func (r *round) kind(name journal.ActionKind) *ActionKind {
	for _, cached := range r.kinds {
		if cached.kind.Name == name {
			return cached.kind
		}
	}
	return r.Kind(name)
}

func (r *round) rulesOf(kind *ActionKind) []cachedRule {
	for _, cached := range r.kinds {
		if cached.kind == kind {
			return cached.rules
		}
	}
	var rules []cachedRule
	for i := range r.cache.rules {
		if rule := &r.cache.rules[i]; kind.obeys(rule.Name) {
			rules = append(rules, cachedRule{Rule: rule})
		}
	}
	r.kinds = append(r.kinds, cachedKind{kind, rules})
	return rules
}

// ActionID returns a readable id for a new action. No open action has the id, and other journals do not use it for
// actions about the same thing.
func (s *State) ActionID(kind *ActionKind, subject journal.Subject) string {
	base := fmt.Sprintf("%s-%s-%d", kind.Verb, strings.ReplaceAll(subject.Name, "/", "-"), s.Seq)
	if s.Journal.Mark != "" {
		base += "-" + s.Journal.Mark
	}
	id := base
	for i := 2; s.Actions[id] != nil; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	return id
}
