package ring

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
	"github.com/replicatedhq/ekco/observers"
)

// This file is a whole capability, through which docs/capabilities.md walks: lamps that
// shall burn while there are at least two nodes. A real one has the same parts in
// fsm/lamp, observers/lamp and actions/lamp.

// lamps is the capability: one entry in the list.
func lamps(home lampHome, policy lampPolicy) Capability {
	return Capability{
		Fsm:     fsm.Capability{Machine: lampMachine{}, Kinds: lampKinds(), Rules: lampRules()},
		Policy:  policy,
		Words:   lampWords,
		Actions: func(kube.API) []actions.Definition { return []actions.Definition{lightLamp(home), renewBulb(home)} },
		Sources: func(s *fsm.State) []observers.Source { return lampSources(home, s) },
	}
}

// lampHome is a client of the outside world: the interface that a capability needs,
// which is in internal/ where there is one.
type lampHome interface {
	// Lamps is the source of ConfigMaps, each a lamp.
	Lamps() kube.Source
	// Porch asks a lamp of which there is no object.
	Porch(ctx context.Context) (map[string]lampFacts, error)
	// Lamp reads a lamp live.
	Lamp(ctx context.Context, name string) (lampFacts, error)
	// Turn changes a lamp; the name of the effect is for the test's own books.
	Turn(ctx context.Context, name, effect string, change func(*lampFacts)) error
}

// --- fsm/lamp: facts, policy, table, goal, wants ---

// lampName is the machine's, lampKind what its things are called as subjects.
const (
	lampName = "lamp"
	lampKind = "Lamp"
)

// The kinds of action.
const (
	kindLight journal.ActionKind = "light-lamp"
	kindRenew journal.ActionKind = "renew-bulb"
)

// The states of a lamp.
const (
	lampDark     journal.State = "Dark"
	lampLighting journal.State = "Lighting"
	lampRenewing journal.State = "Renewing"
	lampBurning  journal.State = "Burning"
	lampRemoved  journal.State = "Removed"
)

// lampFacts are what decisions need, and nothing that changes by itself. UID is that
// of the object, if there is one.
type lampFacts struct {
	UID string `json:"-"`
	Lit bool   `json:"lit"`
	// Worn: its bulb is at its end. Bulb is empty while there is none.
	Worn     bool   `json:"worn,omitempty"`
	Bulb     string `json:"bulb,omitempty"`
	Daylight bool   `json:"daylight,omitempty"`
}

// lampPolicy is the configuration's part.
type lampPolicy struct {
	// Nodes is how many there must be, After how long a lamp is dark before it is lit.
	Nodes int
	After time.Duration
	// Off is the setting that keeps EKCO from lighting lamps.
	Off bool
}

func lampPolicyOf(p fsm.Policy) lampPolicy {
	of, _ := p.Of[lampName].(lampPolicy)
	return of
}

// lampMachine implements fsm.Machine.
type lampMachine struct{ fsm.Base }

func (lampMachine) Name() string       { return lampName }
func (lampMachine) New(*fsm.Thing) any { return &lampFacts{} }
func lampOf(t *fsm.Thing) *lampFacts   { return t.Data.(*lampFacts) }

// lampTells is what the event of a transition says, and which event led to it.
func lampTells(reason string) func(*fsm.Thing, journal.State, time.Time) fsm.Report {
	return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
		return fsm.Report{Reason: reason, Cause: t.Newest()}
	}
}

func (lampMachine) Table() fsm.Table {
	present := fsm.Names(lampDark, lampLighting, lampRenewing, lampBurning)
	return fsm.Table{
		Name: lampName, Title: "A lamp", About: "Its identity is the UID of the ConfigMap; the porch lamp has none.",
		Initial: string(lampDark), Over: fsm.Names(lampRemoved),
		Transitions: []fsm.Transition{
			{Event: "light", From: fsm.Names(lampDark, lampBurning), To: string(lampLighting), When: "a light-lamp action is open", Report: lampTells("it is being lit")},
			{Event: "renew", From: fsm.Names(lampDark, lampBurning), To: string(lampRenewing), When: "a renew-bulb action is open", Report: lampTells("its bulb is being renewed")},
			{Event: "lit", From: fsm.Names(lampDark, lampLighting, lampRenewing), To: string(lampBurning), When: "it burns", Report: lampTells("it burns")},
			{Event: "out", From: fsm.Names(lampBurning, lampLighting, lampRenewing), To: string(lampDark), When: "it does not burn", Report: lampTells("it does not burn")},
			{Event: "removed", From: present, To: string(lampRemoved), When: "there is no such lamp any more", Report: lampTells("it was removed")},
			{Event: "back", From: fsm.Names(lampRemoved), To: string(lampDark), When: "there is such a lamp again", Report: lampTells("it is back")},
		},
	}
}

func (lampMachine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	now := lampFacts{UID: t.UID}
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of a lamp: %w", err)
	}
	*lampOf(t) = now
	return nil
}

func (lampMachine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	if t.GoneSeq != 0 {
		return lampRemoved
	}
	open := w.Open(t) // at most one
	switch {
	case len(open) > 0 && open[0].Kind == kindRenew:
		return lampRenewing
	case len(open) > 0:
		return lampLighting
	case lampOf(t).Lit:
		return lampBurning
	}
	return lampDark
}

func (lampMachine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	lamp, policy := lampOf(t), lampPolicyOf(w.Policy)
	nodes, _ := w.Count("node") // another machine, of which it knows the name alone
	if t.GoneSeq != 0 || len(w.Open(t)) > 0 || nodes < policy.Nodes {
		return
	}
	switch {
	case lamp.Worn:
		lampWants(t, w, want, kindRenew, &journal.Change{Key: "bulb", Field: "the bulb of lamp " + t.Name, From: "worn", To: "new"})
	case !lamp.Lit:
		lampWants(t, w, want, kindLight, &journal.Change{Key: "switch", Field: "the switch of lamp " + t.Name, From: "off", To: "on"})
	}
}

// lampWants wants an action when the lamp has been as it is for long enough. What the
// last one has changed need not be seen yet, or was undone before anybody saw it.
func lampWants(t *fsm.Thing, w *fsm.World, want func(fsm.Want), kind journal.ActionKind, change *journal.Change) {
	again, may := t.RepeatDue(kind, w.Policy, lampRest)
	if !may {
		return
	}
	due := t.Since.Add(lampPolicyOf(w.Policy).After)
	if due.Before(again) {
		due = again
	}
	want(fsm.Want{Kind: kind, Due: due, Rank: t.Since, Change: change})
}

// lampRest is longer than it takes until the porch is asked.
const lampRest = time.Minute

// lampInput is what a renew-bulb is asked for with: the bulb that was seen, for when
// somebody takes it out before the action is planned.
type lampInput struct {
	Bulb string `json:"bulb"`
	// Size is that of the new one, if a person wants another.
	Size string `json:"size,omitempty"`
}

func (lampMachine) Request(t *fsm.Thing, kind *fsm.ActionKind, _ *fsm.World) (journal.ActionRequested, uint64) {
	if kind.Name == kindRenew {
		return journal.ActionRequested{Reason: "its bulb is worn", Input: lampInput{Bulb: lampOf(t).Bulb}}, t.FactsSeq
	}
	return journal.ActionRequested{Reason: "it does not burn"}, t.FactsSeq
}

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (lampMachine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if rec.Kind == kindLight && lampOf(t).Lit && len(rec.Steps) == 0 {
		return "it burns"
	}
	return ""
}

// Asked implements [fsm.Asked]: a person may ask for a bulb of another size.
func (lampMachine) Asked(t *fsm.Thing, _ *fsm.World, request fsm.Request, asked *journal.ActionRequested) error {
	if len(request.Input) == 0 {
		return nil
	}
	input := lampInput{Bulb: lampOf(t).Bulb}
	if err := json.Unmarshal(request.Input, &input); err != nil {
		return &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("read what was said of the bulb: %v", err)}
	}
	if input.Size != "E14" && input.Size != "E27" {
		return &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("there is no bulb of size %q; ask for E14 or E27", input.Size)}
	}
	asked.Input = input
	return nil
}

// lampKinds are the two kinds of action as data: the rules that keep EKCO from beginning
// one, and most of them from going on, and what no other action may change meanwhile.
func lampKinds() []fsm.ActionKind {
	rules := []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, ruleDaylight, fsm.RuleBackOff}
	off := func(p fsm.Policy) string {
		if lampPolicyOf(p).Off {
			return "light_lamps is off"
		}
		return ""
	}
	return []fsm.ActionKind{
		{Name: kindLight, Verb: "light", Machine: lampName, Rules: rules, Domains: []string{"lamps"}, SwitchedOff: off},
		{
			Name: kindRenew, Verb: "renew", Machine: lampName, Manual: true, Rules: append([]string{fsm.RuleOneAtATime, ruleBulb}, rules...),
			Domains: []string{"lamps", "ladder"}, Turn: "there is one ladder", SwitchedOff: off,
		},
	}
}

// ruleDaylight: lamps are left alone by day. A person is only warned.
const ruleDaylight = "Daylight"

// ruleBulb: where no bulb is, none is renewed; that is firm.
const ruleBulb = "Bulb"

// lampRules are the rules that only lamps obey.
func lampRules() []fsm.Rule {
	return []fsm.Rule{{
		Name:    ruleDaylight,
		Refuses: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool { return lampOf(t).Daylight },
		Reason:  func(*fsm.World, *fsm.Thing, *fsm.ActionKind) string { return "there is daylight" },
		Lifted:  fsm.Always("EKCO acts on it when it is dark"),
	}, {
		Name: ruleBulb, Mandatory: true, ToBegin: true,
		Refuses: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool { return lampOf(t).Bulb == "" },
		Reason:  func(*fsm.World, *fsm.Thing, *fsm.ActionKind) string { return "there is no bulb in it" },
	}}
}

// lampWords are how its events read. Those that actions write have words already.
var lampWords = words.Component{
	Name: lampName,
	Actions: []words.Action{
		{Kind: kindLight, Verb: "light", Noun: "lamp"},
		{Kind: kindRenew, Verb: "renew the bulb of", Noun: "lamp"},
	},
	Rows: []words.Row{
		{
			Type: journal.TypeThingTransitioned, About: lampKind,
			Sentence: words.Of(func(e journal.Event, p *journal.ThingTransitioned) string {
				return fmt.Sprintf("%s: %s → %s%s", words.Object(e.Subject), p.From, p.To, words.Because(p.Reason))
			}),
			Log: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Line {
				return words.Info("lamp is "+string(p.To), "before", p.From, "reason", p.Reason)
			}),
			Kubernetes: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Note {
				return words.Note{Reason: lampKind + string(p.To), Message: p.Reason, Warning: p.To == lampDark}
			}),
		},
		{Type: journal.TypeThingObserved, About: lampKind, Tone: words.Faint, Wakes: true, Sentence: words.Of(lampSeen)},
	},
}

func lampSeen(e journal.Event, p *journal.ThingObserved) string {
	var lamp lampFacts
	switch err := json.Unmarshal(p.Facts, &lamp); {
	case err != nil:
		return ""
	case lamp.Lit:
		return words.Object(e.Subject) + " burns"
	}
	return words.Object(e.Subject) + " is dark"
}

// --- observers/lamp: where the facts come from ---

// lampSources are one that watches and one that polls. They tell of different lamps:
// what the journal has of a thing is the last that one source said.
func lampSources(home lampHome, s *fsm.State) []observers.Source {
	objects, asked := map[string]lampFacts{}, map[string]lampFacts{}
	for _, t := range s.Things {
		switch {
		case t.Machine() != lampName || t.GoneSeq != 0:
		case t.UID != "":
			objects[t.Name] = *lampOf(t)
		default:
			asked[t.Name] = *lampOf(t)
		}
	}
	return []observers.Source{
		observers.Watch(observers.Watched[lampFacts]{
			Name: "lamps", From: home.Lamps(), Object: &corev1.ConfigMap{}, Read: readLamp, Noun: lampNoun(objects),
		}),
		observers.Poll(observers.Polled[lampFacts]{
			Name: "porch lamps", Ask: home.Porch, Interval: 10 * time.Second, Noun: lampNoun(asked),
		}),
	}
}

func readLamp(obj runtime.Object) (name string, lamp lampFacts, ok bool) {
	o, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return "", lampFacts{}, false
	}
	burns, ok := o.Data["burns"]
	return o.Name, lampFacts{
		UID: string(o.UID), Lit: burns == "yes", Worn: o.Data["worn"] == "yes", Bulb: o.Data["bulb"], Daylight: o.Data["daylight"] == "yes",
	}, ok
}

func lampNoun(known map[string]lampFacts) observers.Noun[lampFacts] {
	return observers.Noun[lampFacts]{
		Observed: func(name string, lamp lampFacts) journal.Draft {
			facts, err := json.Marshal(lamp)
			if err != nil {
				panic(err) // no value of this type cannot be encoded
			}
			return lampDraft(journal.TypeThingObserved, name, lamp, journal.ThingObserved{Machine: lampName, Facts: facts})
		},
		Gone: func(name string, lamp lampFacts, reason string) journal.Draft {
			return lampDraft(journal.TypeThingGone, name, lamp, journal.ThingGone{Machine: lampName, Reason: reason})
		},
		Equal: func(a, b lampFacts) bool { return a == b },
		UID:   func(lamp lampFacts) string { return lamp.UID },
		Known: maps.All(known),
	}
}

func lampDraft(event journal.Type, name string, lamp lampFacts, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: "observer/lamp", Subject: journal.Subject{Kind: lampKind, Name: name, UID: lamp.UID}, Payload: payload}
}

// --- actions/lamp: plans, steps, proofs, checks ---

// What steps do, which selects their code.
const (
	doesSwitchOn = "switch-on"
	doesUnscrew  = "unscrew"
	doesScrewIn  = "screw-in"

	lampStepTimeout = journal.Duration(30 * time.Second)
)

// lampPlan is every fact that is needed to finish: the size of a bulb cannot be read
// once that is out.
type lampPlan struct {
	Bulb string `json:"bulb"`
}

func lightLamp(home lampHome) actions.Definition {
	return actions.Definition{
		Kind: kindLight, Noun: "lighting", Expendable: true,
		Plan: func(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
			return journal.Plan{Steps: []journal.PlannedStep{{
				ID: doesSwitchOn, Does: doesSwitchOn, Preflights: []string{checkStillThere}, Timeout: lampStepTimeout,
			}}}, nil
		},
		Steps: map[string]actions.StepDef{doesSwitchOn: {Step: lampStep{
			home: home, does: doesSwitchOn, missing: "it is still dark",
			happened: func(now lampFacts, _ lampPlan) bool { return now.Lit },
			change:   func(lamp *lampFacts, _ lampPlan) { lamp.Lit = true },
		}}},
		Preflights: map[string]actions.Preflight{checkStillThere: stillThere(home)},
	}
}

func renewBulb(home lampHome) actions.Definition {
	return actions.Definition{
		Kind: kindRenew, Noun: "renewal",
		Plan: func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
			lamp, err := home.Lamp(ctx, record.Subject.Name)
			if err != nil {
				return journal.Plan{}, fmt.Errorf("read lamp %s: %w", record.Subject.Name, err)
			}
			asked, err := journal.InputOf[lampInput](record.Request)
			if err != nil {
				return journal.Plan{}, err
			}
			facts, err := json.Marshal(lampPlan{Bulb: cmp.Or(asked.Size, lamp.Bulb, asked.Bulb)})
			return journal.Plan{Facts: facts, Steps: []journal.PlannedStep{
				{ID: doesUnscrew, Does: doesUnscrew, Irreversible: true, Preflights: []string{checkStillThere, actions.Policy}, Timeout: lampStepTimeout},
				{ID: doesScrewIn, Does: doesScrewIn, After: []string{doesUnscrew}, Timeout: lampStepTimeout},
			}}, err
		},
		Steps: map[string]actions.StepDef{
			doesUnscrew: {Step: lampStep{
				home: home, does: doesUnscrew, missing: "the old bulb is still in it",
				happened: func(now lampFacts, _ lampPlan) bool { return now.Bulb == "" },
				change:   func(lamp *lampFacts, _ lampPlan) { *lamp = lampFacts{UID: lamp.UID} },
			}},
			doesScrewIn: {Step: lampStep{
				home: home, does: doesScrewIn, missing: "there is no new bulb in it",
				happened: func(now lampFacts, plan lampPlan) bool { return now.Bulb == plan.Bulb },
				change:   func(lamp *lampFacts, plan lampPlan) { lamp.Bulb = plan.Bulb },
			}},
		},
		Preflights: map[string]actions.Preflight{checkStillThere: stillThere(home)},
	}
}

// lampStep is an effect and its proof. Both bear being called twice.
type lampStep struct {
	home          lampHome
	does, missing string
	happened      func(now lampFacts, plan lampPlan) bool
	change        func(lamp *lampFacts, plan lampPlan)
}

func (s lampStep) plan(step actions.StepContext) (plan lampPlan, err error) {
	if len(step.Action.Plan.Facts) > 0 {
		err = step.Facts(&plan)
	}
	return plan, err
}

func (s lampStep) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	plan, err := s.plan(step)
	if err != nil {
		return actions.Proof{}, err
	}
	lamp, err := s.home.Lamp(ctx, step.Action.Subject.Name)
	if err != nil {
		return actions.Proof{}, err
	}
	return actions.Proof{Done: s.happened(lamp, plan), Missing: s.missing}, nil
}

func (s lampStep) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	plan, err := s.plan(step)
	if err != nil {
		return nil, err
	}
	name := step.Action.Subject.Name
	return nil, s.home.Turn(ctx, name, s.does+" "+name, func(lamp *lampFacts) { s.change(lamp, plan) })
}

const checkStillThere = "LampStillThere"

// stillThere reads the lamp live and compares UIDs before each destructive step.
func stillThere(home lampHome) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		lamp, err := home.Lamp(ctx, record.Subject.Name)
		switch {
		case errors.Is(kube.Sentinel(err), kube.ErrNotFound), err == nil && lamp.UID != record.Subject.UID:
			return actions.Abandon("the lamp is gone").About("gone")
		case err != nil:
			return actions.Hold(err.Error()).About("unread")
		}
		return actions.Pass()
	})
}
