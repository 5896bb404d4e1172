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

// ActorOperator is the actor of everything that [Decide] drafts.
const ActorOperator = "operator"

// Decisions is what must happen next.
type Decisions struct {
	// Events are to be appended as one batch.
	Events []journal.Draft
	// Next is when to decide again even if nothing happens; zero means never.
	Next time.Time
}

// Decide returns what must happen next in state s at time now. It changes nothing. After its events are folded, another
// Decide at the same time returns no events.
func Decide(s *State, p Policy, now time.Time) Decisions {
	r := &round{World: Look(s, p, now), wanted: map[refusalKey]wanted{}}
	pauses := r.endPauses()
	cancels := r.cancelObsolete()
	want := r.want // once, not for each thing
	for _, t := range s.Things {
		r.decideThing(t, want)
	}
	r.takeTurns()
	return Decisions{
		Events: slices.Concat(pauses, cancels, r.thingEvents(), r.refusalEvents()),
		Next:   r.next,
	}
}

// round is one call of Decide.
type round struct {
	*World
	// kinds are those used so far in this round. There are few, so a loop is faster than a map.
	kinds []askedKind
	// plan is for the current thing; waits are its actions that run one at a time. Most plans stay empty and are not
	// kept.
	plan  thingPlan
	waits []waiting
	// plans are those with events or waits.
	plans []*thingPlan
	// candidates may begin an action of which one runs at a time, by kind.
	candidates map[journal.ActionKind][]candidate
	wanted     map[refusalKey]wanted
	next       time.Time
}

// askedKind is a kind of action with the rules that it obeys, in the order in which Decide asks them.
type askedKind struct {
	kind  *ActionKind
	rules []askedRule
}

// askedRule is a rule with its answer, if that is the same for every thing.
type askedRule struct {
	*Rule
	asked, refuses bool
	// noted is the thing with which the refusal of a rule about the cluster was noted.
	noted *Thing
}

// thingPlan is what this round decides about one thing.
type thingPlan struct {
	thing  *Thing
	state  journal.State
	events []journal.Draft
}

// waiting is an action that the current thing may begin when its turn comes.
type waiting struct {
	kind *ActionKind
	want Want
}

// candidate is a thing that waits for its turn.
type candidate struct {
	plan *thingPlan
	want Want
}

// at makes the next Decide happen no later than t.
func (r *round) at(t time.Time) {
	if t.After(r.Now) && (r.next.IsZero() || t.Before(r.next)) {
		r.next = t
	}
}

func (r *round) endPauses() []journal.Draft {
	var events []journal.Draft
	for key, pause := range r.Pauses {
		if !pauseOver(pause, r.Now) {
			r.at(pause.Until)
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
		// An EKCO in dry run leaves real actions to a real operator.
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

// mustFinish reports whether an action can no longer become obsolete: it is past its point of no return, or an
// unreadable event may say so.
func mustFinish(rec *journal.ActionRecord) bool { return rec.PastNoReturn || rec.Unreadable != "" }

// switchedOff returns which setting forbids an action that EKCO began itself, or "". The settings of a command that
// works without an operator are not the operator's, and forbid nothing.
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

// decideThing moves the thing to its goal, and handles what it wants.
func (r *round) decideThing(t *Thing, want func(Want)) {
	r.plan, r.waits = thingPlan{thing: t, state: t.State}, r.waits[:0]
	r.settle(&r.plan)
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

// settle moves the thing along its table until it is at its goal, or the table has no way there.
func (r *round) settle(plan *thingPlan) {
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

// Towards drafts the first transition on the table's way from one state to another, and returns the state that it
// enters. It reports false if there is no way.
func (w *World) Towards(t *Thing, from, goal journal.State) (draft journal.Draft, to journal.State, ok bool) {
	step := t.machine.ways[way{string(from), string(goal)}]
	if step == nil {
		return journal.Draft{}, from, false
	}
	told := step.Tells(t, from, w.Now)
	to = journal.State(step.To)
	typ, payload := t.machine.Transitioned(journal.ThingTransitioned{
		Machine: t.Machine(), From: from, To: to, Event: step.Event, Since: told.Since, Reason: told.Reason,
	})
	return journal.Draft{Type: typ, Subject: t.Subject, Cause: told.Cause, Actor: ActorOperator, Payload: payload}, to, true
}

// want requests what the current thing wants, if that is due and no rule refuses it. If one action of the kind runs at
// a time, it only notes the want.
func (r *round) want(want Want) {
	if r.Now.Before(want.Due) {
		r.at(want.Due)
		return
	}
	kind := r.kind(want.Kind)
	r.change = want.Change
	switch {
	case kind == nil:
		r.refuse(&askedRule{Rule: &unknownKind}, r.plan.thing, &ActionKind{Name: want.Kind})
	case r.refused(r.plan.thing, kind) != nil:
	case kind.obeys(RuleOneAtATime):
		r.waits = append(r.waits, waiting{kind, want})
	default:
		r.request(&r.plan, kind, want)
	}
}

// request drafts the action's request, and moves the thing to its new goal.
func (r *round) request(plan *thingPlan, kind *ActionKind, want Want) {
	t := plan.thing
	request, cause := t.machine.Request(t, kind, r.World)
	request.Kind, request.DryRun, request.Change = kind.Name, r.Policy.DryRun, t.request(want.Change, r.Now)
	rec := &journal.ActionRecord{
		ID: r.ActionID(kind, t.Subject), Kind: kind.Name, Subject: t.Subject, Status: Requested,
		RequestedBy: ActorOperator, RequestedAt: r.Now, Request: request,
	}
	plan.events = append(plan.events, journal.Draft{
		Type: journal.TypeActionRequested, Subject: t.Subject, Action: rec.ID, Cause: cause, Actor: ActorOperator, Payload: request,
	})
	r.open[t] = append(r.open[t], rec)
	r.wait(rec)
	r.forgetAnswers()
	r.settle(plan)
}

// takeTurns requests one action of each kind of which one runs at a time: that of the first candidate. The others wait.
func (r *round) takeTurns() {
	for _, name := range slices.Sorted(maps.Keys(r.candidates)) {
		candidates, kind := r.candidates[name], r.Kind(name)
		chosen := slices.MinFunc(candidates, func(a, b candidate) int {
			return cmp.Or(a.want.Rank.Compare(b.want.Rank), compareThings(a.plan.thing, b.plan.thing))
		})
		r.request(chosen.plan, kind, chosen.want)
		for _, other := range candidates {
			if other.plan != chosen.plan {
				r.change = other.want.Change
				r.refused(other.plan.thing, kind)
			}
		}
	}
}

// thingEvents returns the events of the plans, in the order of the things' names.
func (r *round) thingEvents() []journal.Draft {
	slices.SortFunc(r.plans, func(a, b *thingPlan) int { return compareThings(a.thing, b.thing) })
	var events []journal.Draft
	for _, plan := range r.plans {
		events = append(events, plan.events...)
	}
	return events
}

// refused returns the first rule that refuses the action and notes the refusal, or returns nil.
func (r *round) refused(t *Thing, kind *ActionKind) *Rule {
	rules := r.rulesOf(kind)
	for i := range rules {
		if rule := &rules[i]; rule.against(r.World, t, kind) {
			r.refuse(rule, t, kind)
			return rule.Rule
		}
	}
	return nil
}

// against asks the rule, once in a round if its answer is the same for every thing.
func (a *askedRule) against(w *World, t *Thing, kind *ActionKind) bool {
	if !a.Cluster {
		return a.Refuses(w, t, kind)
	}
	if !a.asked {
		a.asked, a.refuses = true, a.Refuses(w, t, kind)
	}
	return a.refuses
}

// forgetAnswers drops the cached answers: the action just requested may change them.
func (r *round) forgetAnswers() {
	for _, of := range r.kinds {
		for i := range of.rules {
			of.rules[i] = askedRule{Rule: of.rules[i].Rule}
		}
	}
}

// kind returns the kind of that name, or nil.
func (r *round) kind(name journal.ActionKind) *ActionKind {
	for _, of := range r.kinds {
		if of.kind.Name == name {
			return of.kind
		}
	}
	return r.Kind(name)
}

// rulesOf returns the rules that the kind obeys.
func (r *round) rulesOf(kind *ActionKind) []askedRule {
	for _, of := range r.kinds {
		if of.kind == kind {
			return of.rules
		}
	}
	var rules []askedRule
	for i := range r.cache.rules {
		if rule := &r.cache.rules[i]; kind.obeys(rule.Name) {
			rules = append(rules, askedRule{Rule: rule})
		}
	}
	r.kinds = append(r.kinds, askedKind{kind, rules})
	return rules
}

// ActionID returns an id that is readable, not used by an open action, and different from the ids that another journal
// gives actions about the same thing.
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
