package node

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's wish to purge a node.
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
	Input
	// Refused says that the person was refused without a record, and asks for
	// the record alone: nothing is admitted.
	Refused bool
	// Traces is what was found of a node that nobody knows; nil when nobody
	// looked. It is found where the request is answered, never sent.
	Traces *Traces
}

// Input is what else a person may say of a purge.
type Input struct {
	// MinReadyPrimaries and MinReadyWorkers, when set, stand in for the policy's
	// minimums in the guard of ready nodes.
	MinReadyPrimaries *int `json:"min_ready_primaries,omitempty"`
	MinReadyWorkers   *int `json:"min_ready_workers,omitempty"`
	// Unasked is set when the person could not be asked whether the purge is meant.
	Unasked bool `json:"unasked,omitempty"`
	// MaintainRook, when set, stands in for the setting
	// maintain_rook_storage_nodes in this purge.
	MaintainRook *bool `json:"maintain_rook_storage_nodes,omitempty"`
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

// Asked returns the request as the engine takes it.
func (r Request) Asked() fsm.Request {
	asked := fsm.Request{
		Kind: r.Kind, Name: r.Node, UID: r.UID, Actor: r.Actor, Reason: r.Reason,
		Force: r.Force, DryRun: r.DryRun, Warned: r.Warned, Refused: r.Refused,
	}
	if r.Traces != nil {
		asked.Seen = r.Traces
	}
	if r.Input != (Input{}) {
		content, err := json.Marshal(r.Input)
		if err != nil {
			panic(err) // no value of this type cannot be encoded
		}
		asked.Input = content
	}
	return asked
}

// ReadRequest returns what the engine was asked.
func ReadRequest(asked fsm.Request) (Request, error) {
	r := Request{
		Kind: asked.Kind, Node: asked.Name, UID: asked.UID, Actor: asked.Actor, Reason: asked.Reason,
		Force: asked.Force, DryRun: asked.DryRun, Warned: asked.Warned, Refused: asked.Refused,
	}
	r.Traces, _ = asked.Seen.(*Traces)
	if len(asked.Input) > 0 {
		if err := json.Unmarshal(asked.Input, &r.Input); err != nil {
			return r, &fsm.RefusedError{Rule: fsm.RuleInput, Reason: fmt.Sprintf("read the input of the request to purge node %s: %v", asked.Name, err)}
		}
	}
	return r, nil
}

// Admit answers a person's request to purge a node; see [fsm.Admit]. Of a name that has
// neither a machine nor traces it returns an *[UnknownNodeError]. Storm brake, pause,
// exclusion and the minimums without the node do not refuse a person: they are warnings
// that [fsm.CheckRule] gives. What is no purge is only about nodes that are there.
func (machine) Admit(s *fsm.State, p fsm.Policy, now time.Time, asked fsm.Request) (fsm.Admission, error) {
	if asked.Kind != journal.ActionPurgeNode {
		return fsm.AdmitPresent(s, p, now, asked)
	}
	request, err := ReadRequest(asked)
	if err != nil {
		return fsm.Admission{}, err
	}
	return admit(s, p, now, request)
}

func admit(s *fsm.State, p fsm.Policy, now time.Time, request Request) (fsm.Admission, error) {
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
			"the name now belongs to another node (uid %s) than the one you saw (uid %s); check it, then ask again", n.UID, request.UID))
	}
	open := openPurge(s, n.UID)
	switch {
	case n.State == Purged, n.purged():
		return fsm.Admission{AlreadyDone: true, Message: fmt.Sprintf("node %s (%s) is purged already", n.Name, identity(n))}, nil
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
	return s.OpenOf(nodeUID, journal.ActionPurgeNode)
}

// admitNew admits a purge of a node that has none open.
func admitNew(w *fsm.World, n *Node, request Request) (fsm.Admission, error) {
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
			Input:  journal.PurgeInput{Live: n.mayAnswer(), Unasked: request.Unasked && n.mayBeReady(), MaintainRook: request.MaintainRook, Node: n.lastFacts()},
		},
	}}
	if moved, _, ok := w.Towards(n.Thing, n.State, Purging); ok {
		events = append(events, moved)
	}
	return fsm.Admission{Action: id, Events: append(events, w.Warned(n.Subject, id, request.Actor, request.Warned)...)}, nil
}

func guardReason(n *Node, others, least int) string {
	role := n.Facts.Role
	if n.Ready() {
		return fmt.Sprintf("the node is one of %d ready %s nodes, and at least %d must remain; make it unready first, add another node, or use --force",
			others+1, role, least)
	}
	return fmt.Sprintf("the node is flapping, %d other %s nodes are ready, and at least %d must remain; shut it down first, add another node, or use --force",
		others, role, least)
}

// admitOpen answers a request for a node whose purge is open.
func admitOpen(w *fsm.World, n *Node, open *journal.ActionRecord, request Request) (fsm.Admission, error) {
	say := fsm.Resuming{
		Retried: "purge requested again",
		Anew:    func() (fsm.Admission, error) { return admitNew(w, n, request) },
	}
	if request.otherRook(open, *policyOf(w)) {
		say.Note = "; the maintain_rook_storage_nodes given now does not apply to it: ask again when it has ended"
	}
	return w.AdmitOpen(n.Thing, open, request.Asked(), say)
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

// identity tells a machine from others of its name.
func identity(n *Node) string {
	if journal.IsTraced(n.UID) {
		return "which EKCO never saw"
	}
	return "uid " + n.UID
}

func refuse(n *Node, request Request, rule, reason string) (fsm.Admission, error) {
	return fsm.Refuse(n.Thing, request.Asked(), rule, reason)
}
