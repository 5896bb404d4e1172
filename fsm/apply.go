package fsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

const maxProblems = 20

// Apply decodes the event and changes the state by it; see [State.ApplyDecoded].
func (s *State) Apply(e journal.Event) { s.ApplyDecoded(e.Decoded()) }

// ApplyDecoded changes the state by the event ("folds" the event). It accepts every event and never panics. An event
// that this EKCO does not understand holds its action; without an action it is ignored. For an event that does not fit
// the state, ApplyDecoded adds a text to Problems. It skips events up to number Seq, which are already folded. The
// state may keep parts of the event, so the caller must not change the event after the call.
func (s *State) ApplyDecoded(d journal.Decoded) {
	if d.Seq <= s.Seq {
		return
	}
	s.Journal.noteLoss(d, s.Seq, s.Time)
	s.Seq, s.Time = d.Seq, d.Time
	if d.Err != nil {
		s.holdUnreadable(d.Event, d.Err)
		return
	}
	s.fold(d.Event, d.Body)
	s.noteOperator(d.Event)
}

// holdUnreadable holds the action of an event that this EKCO cannot read. If EKCO knows the event's type and version,
// it also adds a problem, because the payload is wrong.
func (s *State) holdUnreadable(e journal.Event, err error) {
	if !errors.Is(err, journal.ErrUnknownType) && !errors.Is(err, journal.ErrUnknownVersion) {
		s.Problem(e, "%v", err)
	}
	if e.Action == "" {
		return
	}
	rec := s.Actions[e.Action]
	if rec == nil {
		rec = s.openUnreadable(e)
	}
	if rec == nil {
		return
	}
	rec.Unreadable = fmt.Sprintf("event %d (%s, version %d): %v", e.Seq, e.Type, e.Version, err)
	rec.LastSeq = e.Seq
	s.changeStatus(rec, actionHold)
}

// openUnreadable opens an action whose request this EKCO cannot read, so that the status shows the action as held. For
// other events about an unknown action it returns nil, because the action may have ended.
func (s *State) openUnreadable(e journal.Event) *journal.ActionRecord {
	if e.Type != journal.TypeActionRequested && e.Type != journal.TypeActionAdopted {
		return nil
	}
	rec := &journal.ActionRecord{
		ID: e.Action, Subject: e.Subject, Status: Requested, RequestedBy: e.Actor, RequestedAt: e.Time,
	}
	// The kind may be missing. If it is known, rules that count actions of a kind include this one.
	var hint struct {
		Kind journal.ActionKind `json:"kind"`
	}
	if json.Unmarshal(e.Payload, &hint) == nil {
		rec.Kind = hint.Kind
	}
	rec.Request.Kind = rec.Kind
	s.Actions[rec.ID] = rec
	return rec
}

func (s *State) fold(e journal.Event, payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.OperatorStarted:
		s.foldStarted(e, p)
	case *journal.OperatorStopped:
		s.foldStopped(e)
	case *journal.ClockJumped:
		s.foldJumped(e, p)
	case *journal.APILost:
		if s.API.LostAt.IsZero() {
			s.API.LostAt, s.API.Error = e.Time, p.Error
		}
	case *journal.APIRecovered:
		s.API = APIState{SettlingFrom: e.Time}
	case *journal.PolicyRefused:
		s.foldRefused(e, p)
	case *journal.PolicyLifted:
		s.dropRefusal(e.Subject, p.Kind)
	case *journal.PauseSet:
		s.foldPaused(e, p)
	case *journal.PauseCleared:
		delete(s.Pauses, PauseKey(e.Subject))
	case *journal.JournalAdopted:
		s.foldAdoptedState(e, p)
	default:
		if !s.Journal.fold(e, payload) && !s.foldThing(e, payload) {
			s.foldAction(e, payload)
		}
	}
}

// foldStarted sets the operator that started, and starts the settling period. It forgets a recorded outage of the API:
// if the outage continues, EKCO notices it again, and the settling period keeps EKCO from acting until then.
func (s *State) foldStarted(e journal.Event, p *journal.OperatorStarted) {
	s.adoptClock(e, p)
	s.Operator = OperatorState{Version: p.Version, Host: p.Host, StartedAt: e.Time, DryRun: p.DryRun, Command: p.Command}
	s.API = APIState{SettlingFrom: e.Time}
	if p.ClusterUID != "" {
		s.Journal.ClusterUID = p.ClusterUID
	}
}

func (s *State) foldStopped(e journal.Event) {
	s.Operator.StoppedAt = e.Time
	s.API.SettlingFrom = time.Time{}
}

func (s *State) foldRefused(e journal.Event, p *journal.PolicyRefused) {
	s.dropRefusal(e.Subject, p.Kind)
	rule := s.cache.rule(p.Rule)
	s.Refusals = append(s.Refusals, Refusal{
		Subject: e.Subject, Kind: p.Kind, Rule: p.Rule, Reason: p.Reason, NeedsPerson: rule != nil && rule.NeedsPerson, Since: e.Time, Seq: e.Seq,
	})
}

func (s *State) dropRefusal(subject journal.Subject, kind journal.ActionKind) {
	for i, r := range s.Refusals {
		if r.Subject == subject && r.Kind == kind {
			s.Refusals = append(s.Refusals[:i], s.Refusals[i+1:]...)
			return
		}
	}
}

// Problem adds a text to Problems that says why the event could not be folded.
func (s *State) Problem(e journal.Event, format string, args ...any) {
	text := fmt.Sprintf("event %d (%s of %s %s): ", e.Seq, e.Type, e.Subject.Kind, e.Subject.Name) +
		fmt.Sprintf(format, args...)
	s.Problems = append(s.Problems, text)
	if extra := len(s.Problems) - maxProblems; extra > 0 {
		s.Problems = append(s.Problems[:0], s.Problems[extra:]...)
	}
}
