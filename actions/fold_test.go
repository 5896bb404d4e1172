package actions

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

func TestARunSeesItsRecordAsTheJournalFoldsIt(t *testing.T) {
	irreversible := journal.PlannedStep{ID: "b", Does: "act", Irreversible: true}
	plan := journal.Plan{Steps: []journal.PlannedStep{{ID: "a", Does: "act"}, irreversible, {ID: "c", Does: "act"}}}
	next := time.Now().Add(time.Minute).UTC()
	life := []struct {
		kind    journal.Type
		payload journal.Payload
	}{
		{journal.TypeActionHeld, journal.ActionHeld{Preflight: "Plan", Reason: "x"}},
		{journal.TypeActionReleased, journal.ActionReleased{Preflight: "Plan"}},
		{journal.TypeActionPlanned, journal.ActionPlanned{Plan: plan}},
		{journal.TypeActionHeld, journal.ActionHeld{Preflight: "X", Step: "a", Reason: "x"}},
		{journal.TypeActionReleased, journal.ActionReleased{Preflight: "X", Step: "a"}},
		{journal.TypeStepStarted, journal.StepStarted{Step: "a", Attempt: 1}},
		{journal.TypeStepFailed, journal.StepFailed{Step: "a", Attempt: 1, Error: "x", NextTry: next}},
		{journal.TypeStepStarted, journal.StepStarted{Step: "a", Attempt: 2}},
		{journal.TypeStepDone, journal.StepDone{Step: "a", Attempt: 2, Outputs: json.RawMessage(`{"x":1}`)}},
		{journal.TypeStepStarted, journal.StepStarted{Step: "b", Attempt: 1}},
		{journal.TypeStepFailed, journal.StepFailed{Step: "b", Attempt: 1, Error: "y"}},
		{journal.TypeActionStalled, journal.ActionStalled{Step: "b", Reason: "y"}},
		{journal.TypeActionHeld, journal.ActionHeld{Preflight: "X", Step: "c", Reason: "x"}},
		{journal.TypeActionRetried, journal.ActionRetried{}},
		{journal.TypeStepStarted, journal.StepStarted{Step: "b", Attempt: 1}},
	}
	subject := journal.NodeSubject("w1", "uid")
	request := journal.ActionRequested{Kind: journal.ActionPurgeNode}
	own := journal.ActionRecord{ID: "a-1", Kind: request.Kind, Subject: subject, RequestedBy: "operator", Request: request}
	store, state := memory.New(), fsm.NewState(fsmnode.Capability())
	put := func(kind journal.Type, payload journal.Payload) {
		t.Helper()
		events, err := store.Append(t.Context(), journal.Draft{
			Type: kind, Subject: subject, Action: own.ID, Actor: "operator", Payload: payload,
		})
		if err != nil {
			t.Fatal(err)
		}
		state.Apply(events[0])
	}
	put(journal.TypeActionRequested, request)
	for i, event := range life {
		put(event.kind, event.payload)
		fold(&own, event.payload, time.Now())
		if got, want := plain(t, own), plain(t, *state.Actions[own.ID]); got != want {
			t.Fatalf("after %d, %s, the run sees\n%s\nthe journal says\n%s", i, event.kind, got, want)
		}
	}
	if len(state.Problems) > 0 {
		t.Errorf("the journal does not fold: %q", state.Problems)
	}
}

// plain returns the record as JSON, without what a run does not track.
func plain(t *testing.T, record journal.ActionRecord) string {
	t.Helper()
	record = snapshot(record)
	record.Status, record.LastSeq, record.RequestedAt = "", 0, time.Time{}
	for id, step := range record.Steps {
		step.StartedAt, step.DoneAt = mark(step.StartedAt), mark(step.DoneAt)
		record.Steps[id] = step
	}
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mark keeps only whether a time is set.
func mark(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return time.Unix(1, 0).UTC()
}
