package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Type names the type of an event.
type Type string

// The event types of journal format 1. [Catalog] lists their payloads.
const (
	// The journal itself.
	TypeJournalCreated  Type = "journal.created"
	TypeJournalSalvaged Type = "journal.salvaged"
	TypeJournalOutdated Type = "journal.outdated"
	TypeJournalAdopted  Type = "journal.adopted"
	TypeJournalReplaced Type = "journal.replaced"
	TypeJournalAccepted Type = "journal.accepted"
	TypeJournalExported Type = "journal.exported"
	TypeJournalPruned   Type = "journal.pruned"
	TypeJournalImported Type = "journal.imported"

	// The operator process, its clock, and its view of the API server.
	TypeOperatorStarted Type = "operator.started"
	TypeOperatorStopped Type = "operator.stopped"
	TypeClockJumped     Type = "clock.jumped"
	TypeAPILost         Type = "api.lost"
	TypeAPIRecovered    Type = "api.recovered"

	// Facts written by observers.
	TypeNodeObserved   Type = "node.observed"
	TypeNodeGone       Type = "node.gone"
	TypePodTerminating Type = "pod.terminating"
	TypePodGone        Type = "pod.gone"

	// The remains in the cluster of a node that EKCO never saw.
	TypeNodeTraced Type = "node.traced"

	// Facts about things whose machine has no event type of its own.
	TypeThingObserved Type = "thing.observed"
	TypeThingGone     Type = "thing.gone"

	// Decisions of the machines and of policy.
	TypeThingTransitioned Type = "thing.transitioned"
	TypeNodeTransitioned  Type = "node.transitioned"
	TypePolicyRefused     Type = "policy.refused"
	TypePolicyLifted      Type = "policy.lifted"
	TypePauseSet          Type = "pause.set"
	TypePauseCleared      Type = "pause.cleared"

	// The life of an action.
	TypeActionRequested  Type = "action.requested"
	TypeActionRefused    Type = "action.refused"
	TypeActionPlanned    Type = "action.planned"
	TypeActionAdopted    Type = "action.adopted"
	TypeActionWarned     Type = "action.warned"
	TypeActionHeld       Type = "action.held"
	TypeActionReleased   Type = "action.released"
	TypeActionLeft       Type = "action.left"
	TypeStepStarted      Type = "step.started"
	TypeStepNoted        Type = "step.noted"
	TypeStepDone         Type = "step.done"
	TypeStepFailed       Type = "step.failed"
	TypeActionStalled    Type = "action.stalled"
	TypeActionRetried    Type = "action.retried"
	TypeActionJoined     Type = "action.joined"
	TypeActionCancelling Type = "action.cancelling"
	TypeActionEnded      Type = "action.ended"
)

// Payload is the content of an event. Each payload type belongs to one event type, and has a version.
type Payload interface {
	eventType() Type
	eventVersion() int
}

// TypeOf returns the event type that the payload belongs to.
func TypeOf(p Payload) Type { return p.eventType() }

var (
	// ErrUnknownType is returned if an event's type is not in the catalog.
	ErrUnknownType = errors.New("unknown event type")
	// ErrUnknownVersion is returned if an event's version is newer than the catalog's.
	ErrUnknownVersion = errors.New("unknown event version")
)

// CatalogEntry describes one event type.
type CatalogEntry struct {
	Type    Type
	Version int
	// Meaning says in one line when the event is written.
	Meaning string
	// New returns a pointer to a zero payload.
	New func() Payload
}

func newEntry[P any, PP interface {
	*P
	Payload
}](meaning string) CatalogEntry {
	var zero PP = new(P)
	return CatalogEntry{
		Type: zero.eventType(), Version: zero.eventVersion(), Meaning: meaning,
		New: func() Payload { return PP(new(P)) },
	}
}

// Catalog lists every event type that EKCO knows, in a fixed order.
func Catalog() []CatalogEntry { return slices.Clone(catalog) }

var catalog = []CatalogEntry{
	newEntry[JournalCreated]("a new, empty journal was created"),
	newEntry[JournalSalvaged]("EKCO renamed a damaged journal and copied its readable prefix; safe mode begins"),
	newEntry[JournalOutdated]("the mirror has newer events of this journal than the file; safe mode begins"),
	newEntry[JournalAdopted]("EKCO took over what a mirror had and this journal lacked"),
	newEntry[JournalReplaced]("EKCO renamed a file that is not this cluster's journal, and created this journal in its place"),
	newEntry[JournalAccepted]("an administrator accepted a salvaged or outdated journal; safe mode ends"),
	newEntry[JournalExported]("old events were moved into a compressed export next to the journal"),
	newEntry[JournalPruned]("an old export or damaged file next to the journal is about to be removed"),
	newEntry[JournalImported]("events of an export were written into this journal"),
	newEntry[OperatorStarted]("the operator began to observe"),
	newEntry[OperatorStopped]("the operator stopped on request"),
	newEntry[ClockJumped]("the clock of EKCO's machine was set, or the machine slept; settling begins"),
	newEntry[APILost]("the Kubernetes API stopped answering"),
	newEntry[APIRecovered]("the Kubernetes API answers again; settling begins"),
	newEntry[NodeObserved]("a Node's facts differ from the last ones written"),
	newEntry[NodeGone]("a Node object no longer exists"),
	newEntry[PodTerminating]("a pod on a lost node has a deletion timestamp"),
	newEntry[PodGone]("a pod that was terminating on a lost node no longer exists"),
	newEntry[NodeTraced]("a person requested the purge of a node that EKCO never saw, and something is left of it"),
	newEntry[ThingObserved]("the facts of a thing differ from the last ones written"),
	newEntry[ThingGone]("a thing no longer exists"),
	newEntry[ThingTransitioned]("a thing entered another state"),
	newEntry[NodeTransitioned]("a node entered another state"),
	newEntry[PolicyRefused]("policy forbids EKCO to act on the subject now"),
	newEntry[PolicyLifted]("the reason of an earlier policy.refused no longer applies"),
	newEntry[PauseSet]("an administrator paused EKCO, or one thing"),
	newEntry[PauseCleared]("a pause was ended, or its time is over"),
	newEntry[ActionRequested]("the operator or a person requested an action"),
	newEntry[ActionRefused]("policy refused a requested action"),
	newEntry[ActionPlanned]("the steps of an action were planned, and its facts captured"),
	newEntry[ActionAdopted]("EKCO took over an open action from the mirror of another journal"),
	newEntry[ActionWarned]("a preflight warned and the action continued"),
	newEntry[ActionHeld]("an action waits, with a reason"),
	newEntry[ActionReleased]("the reason of the last hold no longer applies"),
	newEntry[ActionLeft]("an action will never remove something that now has another owner"),
	newEntry[StepStarted]("a step's effect is about to happen"),
	newEntry[StepNoted]("a running step records what it must know after an interruption"),
	newEntry[StepDone]("the effect of a step was verified"),
	newEntry[StepFailed]("a step failed, or its effect could not be verified; EKCO retries it at next_try"),
	newEntry[ActionStalled]("the retry budget of an action is used up; it waits for retry or cancel, or for a later automatic retry"),
	newEntry[ActionRetried]("an administrator gave a stalled or held action a new budget"),
	newEntry[ActionJoined]("a person requested an action that is already open, and joined it"),
	newEntry[ActionCancelling]("an action is to stop before its point of no return"),
	newEntry[ActionEnded]("an action has ended; no more events have its id"),
}

var catalogByType = func() map[Type]CatalogEntry {
	byType := make(map[Type]CatalogEntry, len(catalog))
	for _, e := range catalog {
		byType[e.Type] = e
	}
	return byType
}()

// Types returns the names of all event types, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(catalogByType)) }

// Encode returns the payload as JSON, and its version. It returns an error if the payload does not belong to Type.
func (d Draft) Encode() (json.RawMessage, int, error) {
	known, ok := catalogByType[d.Type]
	if !ok {
		return nil, 0, fmt.Errorf("encode event %q: %w", d.Type, ErrUnknownType)
	}
	if d.Payload == nil || d.Payload.eventType() != d.Type {
		return nil, 0, fmt.Errorf("encode event %q: payload is %T, want %T", d.Type, d.Payload, known.New())
	}
	body, err := json.Marshal(d.Payload)
	if err != nil {
		return nil, 0, fmt.Errorf("encode event %q: %w", d.Type, err)
	}
	return body, known.Version, nil
}

// Decode returns a pointer to the event's payload. The error wraps [ErrUnknownType] or [ErrUnknownVersion] if a newer
// EKCO wrote the event; such events must be kept unchanged.
func (e Event) Decode() (Payload, error) {
	known, ok := catalogByType[e.Type]
	if !ok {
		return nil, fmt.Errorf("decode event %d (%s): %w", e.Seq, e.Type, ErrUnknownType)
	}
	if e.Version > known.Version || e.Version < 1 {
		return nil, fmt.Errorf("decode event %d (%s): version %d, this EKCO knows %d: %w",
			e.Seq, e.Type, e.Version, known.Version, ErrUnknownVersion)
	}
	payload := known.New()
	if err := json.Unmarshal(e.Payload, payload); err != nil {
		return nil, fmt.Errorf("decode event %d (%s): %w", e.Seq, e.Type, err)
	}
	return payload, nil
}
