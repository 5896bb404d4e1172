package node

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's request to purge a node.
type Request struct {
	// Kind must be a kind that a person may request; see [fsm.ActionKind].
	Kind journal.ActionKind
	Node string
	// UID is the UID of the node that the person saw under the name, or "". EKCO refuses the request if the node now
	// has another UID.
	UID    string
	Actor  string
	Reason string
	// Force overrides the minimum of ready nodes.
	Force  bool
	DryRun bool
	// Warned are the warnings that the person saw, with the answers. Each becomes an event action.warned, unless the
	// action already has the same warning with the same person.
	Warned []journal.ActionWarned
	Input
	// Refused is set if the request was already refused without an event. EKCO then only records the refusal, and never
	// admits the request.
	Refused bool
	// Traces has the remains of an unknown node; nil without a search. The operator sets it before it answers the
	// request. A client does not send it.
	Traces *Traces
}

// Input is the additional input of a purge.
type Input struct {
	// MinReadyPrimaries and MinReadyWorkers replace the minimums of the policy in the check of ready nodes, unless nil.
	MinReadyPrimaries *int `json:"min_ready_primaries,omitempty"`
	MinReadyWorkers   *int `json:"min_ready_workers,omitempty"`
	// Unasked is set if the person could not be asked to confirm the purge.
	Unasked bool `json:"unasked,omitempty"`
	// MaintainRook replaces the setting maintain_rook_storage_nodes in this purge, unless nil.
	MaintainRook *bool `json:"maintain_rook_storage_nodes,omitempty"`
}

// withMinimums returns the policy with the minimums of ready nodes from the request.
func (r Request) withMinimums(p Policy) Policy {
	if r.MinReadyPrimaries != nil {
		p.MinReadyPrimaries = *r.MinReadyPrimaries
	}
	if r.MinReadyWorkers != nil {
		p.MinReadyWorkers = *r.MinReadyWorkers
	}
	return p
}

// Asked converts the request to the type of package fsm.
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
			panic(err) // this type can always be encoded
		}
		asked.Input = content
	}
	return asked
}

// ReadRequest converts a request from the type of package fsm; see [Request.Asked].
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

// Admit answers a person's request to purge a node; see [fsm.Admit]. If EKCO knows no node with the name and found no
// traces of one, it returns an *[UnknownNodeError]. StormBrake, Paused and Excluded never refuse a person's request;
// ReadyMinimums refuses it only if the node may be ready. Otherwise [fsm.CheckRule] returns these rules as warnings. A
// request of another kind of action must be about a node that exists.
func (machine) Admit(s *fsm.State, p fsm.Policy, now time.Time, asked fsm.Request) (fsm.Admission, error) {
	if asked.Kind != journal.ActionPurgeNode {
		return fsm.AdmitExisting(s, p, now, asked)
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
	n := chooseNode(s, nodes, request)
	if isFullyPurged(s, n) && (request.UID != n.UID || journal.IsTraced(n.UID)) {
		return admitPurged(s, p, now, n, request)
	}
	if request.UID != "" && request.UID != n.UID {
		return refuse(n, request, RuleReplaced, fmt.Sprintf(
			"the name now belongs to another node (uid %s) than the one you saw (uid %s); check it, then ask again", n.UID, request.UID))
	}
	open := openPurge(s, n.UID)
	switch {
	case n.State == Purged, n.isPurged():
		return fsm.Admission{AlreadyDone: true, Message: fmt.Sprintf("node %s (%s) is purged already", n.Name, identityText(n))}, nil
	case s.Journal.SafeMode():
		return refuse(n, request, fsm.RuleSafeMode, fsm.SafeModeReason(s))
	case open == nil:
		return admitNew(fsm.NewWorld(s, p, now), n, request)
	}
	return admitOpen(fsm.NewWorld(s, p, now), n, open, request)
}

// chooseNode returns which of several nodes with the same name a person wants to purge, normally the present node. But
// if the present node answers and has no open purge, it returns an earlier node whose open purge is past its point of
// no return, because the person wants to finish that purge. With --force it is always the present node.
func chooseNode(s *fsm.State, nodes []*Node, request Request) *Node {
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

// openPurge returns the open purge of the node, or nil. It prefers a purge that is not being cancelled.
func openPurge(s *fsm.State, nodeUID string) *journal.ActionRecord {
	return s.OpenOf(nodeUID, journal.ActionPurgeNode)
}

// admitNew answers a request to purge a node that has no open purge.
func admitNew(w *fsm.World, n *Node, request Request) (fsm.Admission, error) {
	role := n.Facts.Role
	if others, least := countsOf(w.State).readyWithout(n), request.withMinimums(*policyOf(w)).minReady(role); n.mayBeReady() && others < least && !request.Force {
		return refuse(n, request, RuleReadyMinimums, minimumReason(n, others, least))
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

func minimumReason(n *Node, others, least int) string {
	role := n.Facts.Role
	if n.Ready() {
		return fmt.Sprintf("the node is one of %d ready %s nodes, and at least %d must remain; make it unready first, add another node, or use --force",
			others+1, role, least)
	}
	return fmt.Sprintf("the node is flapping, %d other %s nodes are ready, and at least %d must remain; shut it down first, add another node, or use --force",
		others, role, least)
}

// admitOpen answers a request to purge a node whose purge is already open.
func admitOpen(w *fsm.World, n *Node, open *journal.ActionRecord, request Request) (fsm.Admission, error) {
	own := fsm.OpenAnswer{
		RetryReason: "purge requested again",
		Replace:     func() (fsm.Admission, error) { return admitNew(w, n, request) },
	}
	if request.changesRook(open, *policyOf(w)) {
		own.Note = "; the maintain_rook_storage_nodes given now does not apply to it: ask again when it has ended"
	}
	return w.AdmitOpen(n.Thing, open, request.Asked(), own)
}

// changesRook reports whether the request gives another maintain_rook_storage_nodes than the open purge uses. If the
// purge does not record a value, changesRook compares with the present setting.
func (r Request) changesRook(open *journal.ActionRecord, p Policy) bool {
	began := p.MaintainRook
	if asked := journal.PurgeInputOf(open.Request).MaintainRook; asked != nil {
		began = *asked
	}
	return r.MaintainRook != nil && *r.MaintainRook != began
}

// identityText returns a text for messages that distinguishes the node from other nodes with the same name.
func identityText(n *Node) string {
	if journal.IsTraced(n.UID) {
		return "which EKCO never saw"
	}
	return "uid " + n.UID
}

func refuse(n *Node, request Request, rule, reason string) (fsm.Admission, error) {
	return fsm.Refuse(n.Thing, request.Asked(), rule, reason)
}
