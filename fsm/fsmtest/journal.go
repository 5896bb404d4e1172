// Package fsmtest has a journal in memory for tests of machines. It folds its events and makes decisions, and the test
// moves its clock.
package fsmtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Journal is a journal in memory. A test may change its fields between calls.
type Journal struct {
	T *testing.T
	S *fsm.State
	P fsm.Policy
	// Now is the time of the next events and decisions.
	Now time.Time
	// Events are all events of the journal.
	Events []journal.Event
}

// New returns a journal of an EKCO that has just started, at noon.
func New(t *testing.T, policy fsm.Policy, capabilities ...fsm.Capability) *Journal {
	t.Helper()
	j := &Journal{T: t, S: fsm.NewState(capabilities...), P: policy, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	j.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	return j
}

// Write appends the drafts as events and folds them. A problem in the state fails the test.
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

// Retained returns the state of an EKCO that has no snapshot, from the events that retention would keep for state s. It
// also keeps the last event and an operator's last event, because retention does not move out such young events.
func Retained(events []journal.Event, s *fsm.State, capabilities ...fsm.Capability) *fsm.State {
	needs, kept := s.Needs(), fsm.NewState(capabilities...)
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "journal.") || s.Actions[e.Action] != nil || e.Seq == s.Seq || e.Seq == s.Clock.LastSeq || needs.Keeps(e) {
			kept.Apply(e)
		}
	}
	return kept
}

// Pass moves the clock forward.
func (j *Journal) Pass(d time.Duration) { j.Now = j.Now.Add(d) }

// Decide calls [fsm.Decide] once and writes the events.
func (j *Journal) Decide() fsm.Decisions {
	j.T.Helper()
	decisions := fsm.Decide(j.S, j.P, j.Now)
	j.Write(decisions.Events...)
	return decisions
}

// Observe writes a thing.observed with facts about a thing.
func (j *Journal) Observe(machine string, of journal.Subject, facts any) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: of, Actor: "observer/" + machine,
		Payload: journal.ThingObserved{Machine: machine, Facts: j.JSON(facts)},
	})
}

// Gone writes a thing.gone about a thing.
func (j *Journal) Gone(machine string, of journal.Subject, reason string) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeThingGone, Subject: of, Actor: "observer/" + machine,
		Payload: journal.ThingGone{Machine: machine, Reason: reason},
	})
}

// Open returns the open action about the subject, or nil. It fails the test if there are several.
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

// Play writes a plan with one step for an open action, and that the step is done with these outputs.
func (j *Journal) Play(rec *journal.ActionRecord, step string, outputs any) {
	j.T.Helper()
	j.PlayAll(rec, Played{step, outputs})
}

// Played is a step with its outputs.
type Played struct {
	Step    string
	Outputs any
}

// PlayAll writes a plan with these steps for an open action, and that the steps are done one after the other.
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

// End writes that an open action ended.
func (j *Journal) End(rec *journal.ActionRecord, outcome journal.Outcome) {
	j.T.Helper()
	j.Write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionEnded{Outcome: outcome, Reason: "so it was"},
	})
}

// JSON returns the value as JSON, or fails the test.
func (j *Journal) JSON(value any) json.RawMessage {
	j.T.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		j.T.Fatal(err)
	}
	return encoded
}
