// Package fsmtest is for tests of machines: a journal in memory that folds its events and makes decisions, with a clock
// that the test moves.
package fsmtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Journal is a journal in memory. Its fields may be changed between calls.
type Journal struct {
	T *testing.T
	S *fsm.State
	P fsm.Policy
	// Now is the time of the next events.
	Now time.Time
	// Events are the whole journal.
	Events []journal.Event
}

// New returns a journal of an EKCO that has just started, at noon.
func New(t *testing.T, policy fsm.Policy, capabilities ...fsm.Capability) *Journal {
	t.Helper()
	j := &Journal{T: t, S: fsm.NewState(capabilities...), P: policy, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	j.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	return j
}

// Write writes drafts and folds them. A problem fails the test.
func (j *Journal) Write(drafts ...journal.Draft) {
	j.T.Helper()
	for _, draft := range drafts {
		body, version, err := draft.Encode()
		if err != nil {
			j.T.Fatal(err)
		}
		e := journal.Event{
			Seq: j.S.Seq + 1, Time: j.Now, Type: draft.Type, Version: version, Subject: draft.Subject,
			Action: draft.Action, Cause: draft.Cause, Actor: draft.Actor, Payload: body,
		}
		j.Events = append(j.Events, e)
		j.S.Apply(e)
	}
	if len(j.S.Problems) > 0 {
		j.T.Fatalf("problems: %q", j.S.Problems)
	}
}

// Retained folds the events that retention would keep for state s, as an EKCO with another fold does. It also keeps the
// last event and an operator's last event, which are too young to drop.
func Retained(events []journal.Event, s *fsm.State, capabilities ...fsm.Capability) *fsm.State {
	needs, kept := s.Needs(), fsm.NewState(capabilities...)
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "journal.") || s.Actions[e.Action] != nil || e.Seq == s.Seq || e.Seq == s.Clock.LastSeq || needs.Keeps(e) {
			kept.Apply(e)
		}
	}
	return kept
}

// Pass moves the clock.
func (j *Journal) Pass(d time.Duration) { j.Now = j.Now.Add(d) }

// Decide decides once and writes the events.
func (j *Journal) Decide() fsm.Decisions {
	j.T.Helper()
	decisions := fsm.Decide(j.S, j.P, j.Now)
	j.Write(decisions.Events...)
	return decisions
}

// Observe writes facts of a machine's thing.
func (j *Journal) Observe(machine string, of journal.Subject, facts any) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: of, Actor: "observer/" + machine,
		Payload: journal.ThingObserved{Machine: machine, Facts: j.JSON(facts)},
	})
}

// Gone writes that the thing no longer exists.
func (j *Journal) Gone(machine string, of journal.Subject, reason string) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeThingGone, Subject: of, Actor: "observer/" + machine,
		Payload: journal.ThingGone{Machine: machine, Reason: reason},
	})
}

// Open returns the only open action about the subject, or nil.
func (j *Journal) Open(of journal.Subject) *journal.ActionRecord {
	j.T.Helper()
	var found *journal.ActionRecord
	for _, rec := range j.S.Actions {
		if rec.Subject == of {
			if found != nil {
				j.T.Fatalf("both %s and %s are open", rec.ID, found.ID)
			}
			found = rec
		}
	}
	return found
}

// Play plans an open action with one step, which is done with these outputs.
func (j *Journal) Play(rec *journal.ActionRecord, step string, outputs any) {
	j.T.Helper()
	j.PlayAll(rec, Played{step, outputs})
}

// Played is a step with its outputs.
type Played struct {
	Step    string
	Outputs any
}

// PlayAll plans an open action with these steps, which are done one after the other.
func (j *Journal) PlayAll(rec *journal.ActionRecord, steps ...Played) {
	j.T.Helper()
	var plan journal.Plan
	var done []journal.Payload
	for _, step := range steps {
		plan.Steps = append(plan.Steps, journal.PlannedStep{ID: step.Step, Does: step.Step})
		done = append(done, journal.StepStarted{Step: step.Step, Attempt: 1}, journal.StepDone{Step: step.Step, Attempt: 1, Outputs: j.JSON(step.Outputs)})
	}
	for _, payload := range append([]journal.Payload{journal.ActionPlanned{Plan: plan}}, done...) {
		j.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
	}
}

// End ends an open action.
func (j *Journal) End(rec *journal.ActionRecord, outcome journal.Outcome) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionEnded{Outcome: outcome, Reason: "so it was"},
	})
}

// JSON encodes a value.
func (j *Journal) JSON(value any) json.RawMessage {
	j.T.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		j.T.Fatal(err)
	}
	return encoded
}
