package node

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's wish.
type Request struct {
	// Kind must be one that a person may ask for.
	Kind journal.ActionKind
	Node string
	// UID, when set, is that of the machine which the person was shown under the
	// name. Any other is refused.
	UID    string
	Actor  string
	Reason string
	// Force passes the guard of ready nodes.
	Force  bool
	DryRun bool
	// Warned are the warnings of preflights the person was shown, with the
	// answers; each becomes an action.warned, unless the action has it already
	// from the same person.
	Warned []journal.ActionWarned
	// MinReadyPrimaries and MinReadyWorkers, when set, stand in for the policy's
	// minimums in the guard of ready nodes.
	MinReadyPrimaries, MinReadyWorkers *int
	// MaintainRook, when set, stands in for the setting
	// maintain_rook_storage_nodes in this purge.
	MaintainRook *bool
	// Refused says that the person was refused without a record, and asks for
	// the record alone: nothing is admitted.
	Refused bool
	// Traces is what was found of a node that nobody knows; nil when nobody
	// looked. It is found where the request is answered, never sent.
	Traces *Traces `json:"-"`
}

// guarded returns the policy that guards ready nodes from the request.
func (r Request) guarded(p Policy) Policy {
	if r.MinReadyPrimaries != nil {
		p.MinReadyPrimaries = *r.MinReadyPrimaries
	}
	if r.MinReadyWorkers != nil {
		p.MinReadyWorkers = *r.MinReadyWorkers
	}
	return p
}

// Admission is the answer to a request.
type Admission struct {
	// Events are to be appended as one batch, also when the request is refused.
	Events []journal.Draft
	// Action is the id of the action that does what was asked.
	Action string
	// Resumed is set when that action was open already.
	Resumed bool
	// AlreadyDone is set when there is nothing to do; Message says why.
	AlreadyDone bool
	// Message is for the person, and may be empty.
	Message string
}

// Admit answers a person's request to purge a node. It changes nothing.
//
// It returns a *[fsm.RefusedError] with the event that records the refusal, an
// *[UnknownNodeError] without any when the name has neither a machine nor traces,
// or [fsm.ErrNotRefused]. Storm brake, pause, exclusion and the minimums without the
// node do not refuse a person: they are warnings that [fsm.CheckRule] gives.
func Admit(s *fsm.State, p fsm.Policy, now time.Time, request Request) (Admission, error) {
	admission, err := admit(s, p, now, request)
	if err == nil && request.Refused {
		return Admission{}, fsm.ErrNotRefused
	}
	return admission, err
}

func admit(s *fsm.State, p fsm.Policy, now time.Time, request Request) (Admission, error) {
	if err := s.MayAsk(request.Kind); err != nil {
		return Admission{}, err
	}
	nodes := ByName(s, request.Node)
	if len(nodes) == 0 {
		return admitTraced(s, p, now, request)
	}
	n := meant(s, nodes, request)
	if tracesTell(s, n) && (request.UID != n.UID || journal.IsTraced(n.UID)) {
		return admitPurged(s, p, now, n, request)
	}
	if request.UID != "" && request.UID != n.UID {
		return refuse(n, request, RuleReplaced, fmt.Sprintf(
			"the name means another node now (uid %s) than a moment ago (uid %s); look again, then ask again", n.UID, request.UID))
	}
	open := openPurge(s, n.UID)
	switch {
	case n.State == Purged, n.purged():
		return Admission{AlreadyDone: true, Message: fmt.Sprintf("node %s (%s) is purged already", n.Name, identity(n))}, nil
	case s.Journal.SafeMode():
		return refuse(n, request, fsm.RuleSafeMode, fsm.SafeModeReason(s))
	case open == nil:
		return admitNew(fsm.Look(s, p, now), n, request)
	}
	return admitOpen(fsm.Look(s, p, now), n, open, request)
}

// meant returns which of the nodes of a name a person means: the present one,
// unless it answers and an earlier one is still being purged. Its replacement
// is not to be purged by somebody who wants that purge finished; --force tells.
func meant(s *fsm.State, nodes []*Node, request Request) *Node {
	present := nodes[0]
	if request.Force || !present.mayAnswer() || openPurge(s, present.UID) != nil {
		return present
	}
	for _, n := range nodes[1:] {
		if open := openPurge(s, n.UID); open != nil && open.PastNoReturn {
			return n
		}
	}
	return present
}

// openPurge returns the open purge of the node; one that is being cancelled
// only if there is no other.
func openPurge(s *fsm.State, nodeUID string) *journal.ActionRecord {
	var found *journal.ActionRecord
	for _, rec := range s.Actions {
		if rec.Kind != journal.ActionPurgeNode || rec.Subject.UID != nodeUID {
			continue
		}
		better := found == nil || (found.Cancelling != nil && rec.Cancelling == nil) ||
			((found.Cancelling == nil) == (rec.Cancelling == nil) && fsm.RequestOrder(rec, found) < 0)
		if better {
			found = rec
		}
	}
	return found
}

// admitNew admits a purge of a node that has none open.
func admitNew(w *fsm.World, n *Node, request Request) (Admission, error) {
	role := n.Facts.Role
	if others, least := countsOf(w.State).readyWithout(n), request.guarded(*policyOf(w)).minReady(role); n.mayBeReady() && others < least && !request.Force {
		return refuse(n, request, RuleReadyMinimums, guardReason(n, others, least))
	}
	id := w.ActionID(w.Kind(request.Kind), n.Subject)
	reason := request.Reason
	if reason == "" {
		reason = "asked for by " + request.Actor
	}
	events := []journal.Draft{{
		Type: journal.TypeActionRequested, Subject: n.Subject, Action: id,
		Cause: max(n.FactsSeq, n.GoneSeq), Actor: request.Actor,
		Payload: journal.ActionRequested{
			Kind: request.Kind, Reason: reason, Manual: true, Force: request.Force,
			DryRun: request.DryRun || w.Policy.DryRun,
			Input:  journal.PurgeInput{Live: n.mayAnswer(), MaintainRook: request.MaintainRook, Node: n.lastFacts()},
		},
	}}
	if moved, _, ok := w.Towards(n.Thing, n.State, Purging); ok {
		events = append(events, moved)
	}
	return Admission{Action: id, Events: append(events, w.Warned(n.Subject, id, request.Actor, request.Warned)...)}, nil
}

func guardReason(n *Node, others, least int) string {
	role := n.Facts.Role
	if n.Ready() {
		return fmt.Sprintf("the node is ready and one of %d ready %s nodes, and at least %d must stay; make it unready first, add another node, or use --force",
			others+1, role, least)
	}
	return fmt.Sprintf("the node comes and goes, %d other %s nodes are ready, and at least %d must stay; shut it down first, add another node, or use --force",
		others, role, least)
}

// admitOpen answers a request for a node whose purge is open.
func admitOpen(w *fsm.World, n *Node, open *journal.ActionRecord, request Request) (Admission, error) {
	dryRun := request.DryRun || w.Policy.DryRun
	switch {
	case !dryRun && takesOver(open):
		return takeOver(w, n, open, request)
	case open.Unreadable != "":
		return refuse(n, request, fsm.RuleUnreadable, fsm.UnreadableReason(open))
	case open.Cancelling != nil:
		return refuse(n, request, fsm.RuleCancelling, open.ID+" is being cancelled; ask again when it has ended")
	case open.Request.DryRun != dryRun:
		return refuse(n, request, fsm.RuleOneAtATime, fmt.Sprintf(
			"%s is open and is %s; ask again when it has ended, or run \"ekco cancel %s\" first", open.ID, dryRunWord(open.Request.DryRun), open.ID))
	}
	answer := Admission{Action: open.ID, Resumed: true, Message: fmt.Sprintf("%s of %s, requested by %s, goes on",
		open.ID, fsm.Stamp(open.RequestedAt), open.RequestedBy)}
	if request.otherRook(open, *policyOf(w)) {
		answer.Message += "; it goes on as it began, and maintain_rook_storage_nodes as given now counts only for a purge that begins: ask again when this one has ended"
	}
	if open.Stalled != nil {
		answer.Message += " with a new retry budget"
		answer.Events = append(answer.Events, journal.Draft{
			Type: journal.TypeActionRetried, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
			Payload: journal.ActionRetried{Reason: "its purge was asked for again"},
		})
	}
	// That a stalled one has a new budget says who asked, but not that a person is behind it.
	if request.Actor != open.RequestedBy && (open.Stalled == nil || !open.ByPerson()) {
		answer.Events = append(answer.Events, journal.Draft{
			Type: journal.TypeActionJoined, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
			Payload: journal.ActionJoined{Reason: request.Reason},
		})
	}
	answer.Events = append(answer.Events, w.Warned(n.Subject, open.ID, request.Actor, request.Warned)...)
	return answer, nil
}

// otherRook reports whether the request says otherwise about Rook than what the
// open purge began with, as far as that is on record.
func (r Request) otherRook(open *journal.ActionRecord, p Policy) bool {
	began := p.MaintainRook
	if asked := journal.PurgeInputOf(open.Request).MaintainRook; asked != nil {
		began = *asked
	}
	return r.MaintainRook != nil && *r.MaintainRook != began
}

// takesOver reports whether a person's request replaces the open purge: EKCO
// asked for that one by itself, policy holds it, and nothing of it is done. A
// person may go on where policy holds EKCO.
func takesOver(open *journal.ActionRecord) bool {
	return !open.Request.Manual && open.Status == fsm.Held && len(open.Steps) == 0 && open.Unreadable == ""
}

func takeOver(w *fsm.World, n *Node, open *journal.ActionRecord, request Request) (Admission, error) {
	answer, err := admitNew(w, n, request)
	if err != nil {
		return answer, err
	}
	cancel := journal.Draft{
		Type: journal.TypeActionCancelling, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
		Payload: journal.ActionCancelling{Reason: "replaced by " + answer.Action + ", which " + request.Actor + " asked for"},
	}
	answer.Events = append([]journal.Draft{cancel}, answer.Events...)
	answer.Message = answer.Action + " replaces " + open.ID + ", which was held"
	return answer, nil
}

// identity tells a machine from others of its name.
func identity(n *Node) string {
	if journal.IsTraced(n.UID) {
		return "which EKCO never saw"
	}
	return "uid " + n.UID
}

func dryRunWord(dryRun bool) string {
	if dryRun {
		return "a dry run"
	}
	return "not a dry run"
}

func refuse(n *Node, request Request, rule, reason string) (Admission, error) {
	event := journal.Draft{
		Type: journal.TypeActionRefused, Subject: n.Subject, Cause: max(n.FactsSeq, n.GoneSeq), Actor: request.Actor,
		Payload: journal.ActionRefused{Kind: request.Kind, Rule: rule, Reason: reason},
	}
	return Admission{Events: []journal.Draft{event}}, &fsm.RefusedError{Rule: rule, Reason: reason}
}
