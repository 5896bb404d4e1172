package loadbalancer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// ChangeMachine is the name of the machine for the API server address of all kubelets.
const ChangeMachine = "kubeconfigs"

// The states of the kubeconfigs of all nodes. The first request creates their entry.
const (
	Changing journal.State = "Changing"
	Changed  journal.State = "Changed"
	Partly   journal.State = "Partly"
)

// kubeconfigs is the machine's data about the kubeconfigs of all nodes.
type kubeconfigs struct {
	// Asked is the input of the last action and Outcome is its outcome. Left says what the action did not do.
	Asked   journal.KubeconfigsInput `json:"asked"`
	Outcome journal.Outcome          `json:"outcome,omitempty"`
	Left    string                   `json:"left,omitempty"`
	// Wrote is the event that ended the last change-load-balancer action that also wrote load balancers.
	Wrote uint64 `json:"wrote,omitempty"`
}

func kubeconfigsOf(t *fsm.Thing) *kubeconfigs { return t.Data.(*kubeconfigs) }

// ChangeCapability returns the capability that sets another API server address in the kubeconfigs of all nodes.
func ChangeCapability() fsm.Capability {
	return fsm.Capability{Machine: changer{}, Kinds: []fsm.ActionKind{{
		Name: journal.ActionChangeLoadBalancer, Verb: "change-lb", Machine: ChangeMachine, Manual: true,
		Rules: []string{fsm.RuleAPIUnreachable},
	}}}
}

// ChangeWords has the entries of the message catalog for these changes.
var ChangeWords = words.Component{
	Name:    ChangeMachine,
	Actions: []words.Action{{Kind: journal.ActionChangeLoadBalancer, Verb: "change", Noun: "kubeconfigs"}},
	Rows: []words.Row{
		words.Transition(journal.Kubeconfigs.Kind, words.IsNow("")),
		{
			Type: journal.TypeThingObserved, About: journal.Kubeconfigs.Kind, Tone: words.Faint,
			Sentence: words.Of(func(journal.Event, *journal.ThingObserved) string {
				return "requested: point all kubelets to another API server address"
			}),
		},
	},
}

// changer implements [fsm.Machine].
type changer struct{ fsm.Base }

var (
	_ fsm.Admitter = changer{}
	_ fsm.Asked    = changer{}
	_ fsm.Adopter  = changer{}
)

func (changer) Name() string       { return ChangeMachine }
func (changer) New(*fsm.Thing) any { return &kubeconfigs{} }

func (changer) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject != journal.Kubeconfigs {
		return false
	}
	s.Add(ChangeMachine, subject, Partly, e.Time)
	return true
}

func (changer) Opened(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	if input, err := journal.InputOf[journal.KubeconfigsInput](rec.Request); err == nil && !rec.Request.DryRun {
		*kubeconfigsOf(t) = kubeconfigs{Asked: input, Wrote: kubeconfigsOf(t).Wrote}
	}
}

// Ended implements [fsm.Machine]. A dry run changes nothing.
func (changer) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	if rec.Request.DryRun {
		return true
	}
	k := kubeconfigsOf(t)
	if k.Outcome, k.Left = ended.Outcome, ended.Reason; k.Asked.Internal {
		k.Wrote = s.Seq
		s.Changed(Machine)
	}
	return true
}

func (changer) Table() fsm.Table {
	reportChange := func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
		k := kubeconfigsOf(t)
		return fsm.Report{Reason: strings.TrimSuffix("the requested address is "+k.Asked.Server+"; "+k.Left, "; "), Cause: t.Newest()}
	}
	reportPartly := func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
		k := kubeconfigsOf(t)
		if k.Asked.Server == "" {
			return fsm.Report{Cause: t.Newest()} // there was only a dry run
		}
		return fsm.Report{Reason: strings.TrimSuffix("not all kubelets use "+k.Asked.Server+"; "+k.Left, "; "), Cause: t.Newest()}
	}
	return fsm.Table{
		Name: ChangeMachine, Title: "the API server address of the kubelets",
		About:   "One entry, `cluster`, after the first `ekco change-load-balancer`: the kubeconfigs of all nodes.",
		Initial: string(Partly), Normal: fsm.Names(Changed),
		Attention: map[journal.State]fsm.Attention{Partly: {
			Advice: "repair what the reason names, then run the same command again: ekco change-load-balancer --server=SERVER, with --internal and --exclude as before",
		}},
		Transitions: []fsm.Transition{
			{Event: "change", From: fsm.Names(Partly, Changed), To: string(Changing), When: "a change-load-balancer action is open", Report: reportChange},
			{Event: "changed", From: fsm.Names(Changing, Partly), To: string(Changed), When: "the kubeconfigs of all nodes have the address, and their kubelets are back", Report: reportChange},
			{Event: "partly", From: fsm.Names(Changing, Changed), To: string(Partly), When: "a node is not done, or the action ended early", Report: reportPartly},
		},
	}
}

func (changer) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	switch k := kubeconfigsOf(t); {
	case len(w.Open(t)) > 0:
		return Changing
	case k.Outcome == journal.OutcomeDone && k.Left == "":
		return Changed
	}
	return Partly
}

// Wants implements [fsm.Machine]. It wants nothing, because only a person requests a change.
func (changer) Wants(*fsm.Thing, *fsm.World, func(fsm.Want)) {}

// Request implements [fsm.Machine]. Asked sets the input.
func (changer) Request(t *fsm.Thing, _ *fsm.ActionKind, _ *fsm.World) (journal.ActionRequested, uint64) {
	return journal.ActionRequested{}, t.FactsSeq
}

// Admit implements [fsm.Admitter]. The first request creates the thing. A request for the same change as an open action
// joins that action. A request for another change is refused until the open action has ended.
func (c changer) Admit(s *fsm.State, p fsm.Policy, now time.Time, request fsm.Request) (fsm.Admission, error) {
	input, err := readChange(request)
	if err != nil {
		return fsm.Admission{}, err
	}
	t := s.Things[fsm.Key(journal.Kubeconfigs)]
	if t == nil {
		return c.admitFirstRequest(s, p, now, request)
	}
	if open := s.OpenOf(fsm.Key(t.Subject), request.Kind); open != nil {
		if asked, err := journal.InputOf[journal.KubeconfigsInput](open.Request); err == nil && !asked.Same(input) {
			return fsm.Refuse(t, request, fsm.RuleOneAtATime, fmt.Sprintf("%s is open and %s; run this again when it has ended, or run \"ekco cancel %s\" first", open.ID, changeText(asked), open.ID))
		}
	}
	return fsm.AdmitExisting(s, p, now, request)
}

// admitFirstRequest answers the first request. Its events also create the thing.
func (c changer) admitFirstRequest(s *fsm.State, p fsm.Policy, now time.Time, request fsm.Request) (fsm.Admission, error) {
	if s.Journal.SafeMode() {
		return fsm.Admission{}, &fsm.RefusedError{Rule: fsm.RuleSafeMode, Reason: fsm.SafeModeReason(s)}
	}
	w := fsm.NewWorld(s, p, now)
	t := s.New(ChangeMachine, journal.Kubeconfigs, Partly, now)
	asked := journal.ActionRequested{Kind: request.Kind, Manual: true, Force: request.Force, DryRun: request.DryRun || p.DryRun, Reason: request.Reason}
	if asked.Reason == "" {
		asked.Reason = "asked for by " + request.Actor
	}
	if err := c.Asked(t, w, request, &asked); err != nil {
		return fsm.Admission{}, err
	}
	id := w.ActionID(s.Kind(request.Kind), t.Subject)
	return fsm.Admission{Action: id, Events: []journal.Draft{
		{Type: journal.TypeThingObserved, Subject: t.Subject, Actor: request.Actor, Payload: journal.ThingObserved{Machine: ChangeMachine, Facts: json.RawMessage(`{}`)}},
		{Type: journal.TypeActionRequested, Subject: t.Subject, Action: id, Actor: request.Actor, Payload: asked},
	}}, nil
}

func readChange(request fsm.Request) (input journal.KubeconfigsInput, err error) {
	if request.Name != journal.Kubeconfigs.Name {
		return input, &fsm.UnknownError{Machine: ChangeMachine, Name: request.Name, Near: []string{journal.Kubeconfigs.Name}}
	}
	if err := json.Unmarshal(request.Input, &input); err != nil || input.Server == "" {
		return input, &fsm.RefusedError{Rule: fsm.RuleInput, Reason: "the request names no API server address"}
	}
	slices.Sort(input.Exclude)
	return input, nil
}

func (changer) Asked(_ *fsm.Thing, w *fsm.World, request fsm.Request, asked *journal.ActionRequested) error {
	input, err := readChange(request)
	if err != nil {
		return err
	}
	for _, name := range input.Exclude {
		if near, known := nodeNamed(w, name); !known {
			return &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("there is no node %q to exclude%s", name, near)}
		}
	}
	input.Primaries = nil
	if input.Internal && policyOf(w.Policy).Enabled {
		input.Primaries = sumOf(w).primaries
	}
	asked.Input = input
	return nil
}

// nodeNamed reports whether there is a node with this name. If not, near is a suggestion for the error message.
func nodeNamed(w *fsm.World, name string) (near string, known bool) {
	var names []string
	for _, t := range w.Things {
		if t.Machine() == "node" && t.GoneSeq == 0 {
			names = append(names, t.Name)
			known = known || t.Name == name
		}
	}
	return fsm.DidYouMean(fsm.Near(name, slices.Values(names))), known
}

// changeText returns a text for people about a change.
func changeText(input journal.KubeconfigsInput) string {
	text := "points the kubelets to " + input.Server
	if input.Internal {
		text += " with --internal"
	}
	if len(input.Exclude) > 0 {
		text += ", except on " + strings.Join(input.Exclude, ", ")
	}
	return text
}

func (changer) Details(t *fsm.Thing, _ *fsm.World) []string {
	k := kubeconfigsOf(t)
	if k.Asked.Server == "" {
		return nil
	}
	lines := []string{"the last change " + changeText(k.Asked)}
	if k.Left != "" {
		lines = append(lines, k.Left)
	}
	return lines
}
