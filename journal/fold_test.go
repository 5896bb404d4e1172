package journal

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// folded returns the record that the payloads make, one event a second.
func folded(t *testing.T, record ActionRecord, payloads ...Payload) ActionRecord {
	t.Helper()
	for _, p := range payloads {
		record.LastSeq++
		e := Event{Seq: record.LastSeq, Time: time.Unix(int64(record.LastSeq), 0).UTC(), Actor: "cli:a@h"}
		if err := record.Fold(e, p); err != nil {
			t.Errorf("event %d: %v", e.Seq, err)
		}
	}
	return record
}

var planOfTwo = &ActionPlanned{Plan: Plan{Steps: []PlannedStep{{ID: "a"}, {ID: "b", Irreversible: true}}}}

func TestAWarningIsRememberedOnceForEachPersonNewestLast(t *testing.T) {
	rain, snow := &ActionWarned{Preflight: "P", Warning: "rain"}, &ActionWarned{Preflight: "P", Warning: "snow"}
	r := folded(t, ActionRecord{}, rain, snow, rain)
	want := []Warning{
		{Preflight: "P", Text: "snow", Actor: "cli:a@h", At: time.Unix(2, 0).UTC()},
		{Preflight: "P", Text: "rain", Actor: "cli:a@h", At: time.Unix(3, 0).UTC()},
	}
	if diff := cmp.Diff(want, r.Warned); diff != "" {
		t.Error(diff)
	}
	if !r.HasWarned("cli:a@h", *rain) || r.HasWarned("cli:b@h", *rain) {
		t.Errorf("who was told: %v", r.Warned)
	}
}

func TestARecordDoesNotGrowWithItsWarningsNorChangeThoseOfItsCopies(t *testing.T) {
	r := folded(t, ActionRecord{}, &ActionWarned{Warning: "first"})
	copied := r
	for i := range 3 * maxWarned {
		r = folded(t, r, &ActionWarned{Warning: fmt.Sprint(i)})
	}
	if len(r.Warned) != maxWarned || r.Warned[maxWarned-1].Text != fmt.Sprint(3*maxWarned-1) {
		t.Errorf("kept %d warnings: %v", len(r.Warned), r.Warned)
	}
	if len(copied.Warned) != 1 || copied.Warned[0].Text != "first" {
		t.Errorf("the copy has %v", copied.Warned)
	}
}

func TestAnAnswerIsNotForgottenBecauseTheDetailsOfAnotherWarningChange(t *testing.T) {
	r := folded(t, ActionRecord{}, &ActionWarned{Preflight: "OSDSafeToDestroy", Key: "data", Warning: "data may be lost"})
	for i := range 3 * maxWarned {
		r = folded(t, r, &ActionWarned{Preflight: "CephHealthy", Key: "PG_DEGRADED", Warning: fmt.Sprint(i, " objects")})
	}
	if len(r.Warned) != maxWarned || r.Warned[0].Key != "data" {
		t.Errorf("kept %d warnings: %v", len(r.Warned), r.Warned)
	}
}

func TestFailuresCountSinceTheLastRetry(t *testing.T) {
	failed := func(step string) *StepFailed { return &StepFailed{Step: step, Attempt: 1, Error: "no"} }
	r := folded(t, ActionRecord{}, planOfTwo, failed("a"), failed("a"), failed("b"))
	if r.Steps["a"].Failures != 2 || r.Steps["b"].Failures != 1 {
		t.Errorf("steps: %+v", r.Steps)
	}
	r = folded(t, r, &ActionRetried{}, failed("a"))
	if r.Steps["a"].Failures != 1 || r.Steps["b"].Failures != 0 {
		t.Errorf("steps after a retry: %+v", r.Steps)
	}
	if r.Adopted(Event{Seq: 9}).Steps["a"].Failures != 0 || r.Steps["a"].Failures != 1 {
		t.Error("what failed elsewhere counts where the action is adopted, or the adopted record is not its own")
	}
}

func TestWhoCancelsIsKeptUntilThePointOfNoReturn(t *testing.T) {
	r := folded(t, ActionRecord{}, planOfTwo, &ActionCancelling{Reason: "r"})
	if r.Cancelling == nil || r.CancellingBy != "cli:a@h" {
		t.Errorf("record: %+v", r)
	}
	r = folded(t, r, &StepStarted{Step: "b", Attempt: 1}, &ActionCancelling{Reason: "late"})
	if r.Cancelling != nil || r.CancellingBy != "" || !r.PastNoReturn {
		t.Errorf("past its point of no return: %+v", r)
	}
}

func TestWhatMakesNoSenseIsSaidAndTheRestFolded(t *testing.T) {
	r := folded(t, ActionRecord{ID: "x"}, planOfTwo)
	for want, p := range map[string]Payload{
		"action x already has a plan":       &ActionPlanned{},
		`the plan of x has no step "c"`:     &StepStarted{Step: "c", Attempt: 1},
		`the plan of x has no step "other"`: &StepDone{Step: "other", Attempt: 1},
	} {
		if err := r.Fold(Event{Seq: 7, Time: time.Unix(7, 0)}, p); err == nil || err.Error() != want {
			t.Errorf("%T: %v, want %s", p, err, want)
		}
	}
	if len(r.Plan.Steps) != 2 || !r.Steps["c"].Open || !r.Steps["other"].Done() || r.LastSeq != 7 {
		t.Errorf("record: %+v", r)
	}
}

// A mirror and a snapshot of a version without them have none of the newer fields.
func TestARecordOfAnOlderVersionIsReadAndOneWithoutNewsIsWrittenAsThen(t *testing.T) {
	old := `{"id":"x","kind":"purge-node","subject":{"kind":"Node"},"status":"Running","requested_by":"operator","requested_at":"2026-03-01T13:00:00Z",` +
		`"request":{"kind":"purge-node","reason":""},"steps":{"a":{"attempts":1}},"last_seq":3}`
	var r ActionRecord
	if err := json.Unmarshal([]byte(old), &r); err != nil {
		t.Fatal(err)
	}
	if now, err := json.Marshal(r); err != nil || string(now) != old {
		t.Errorf("written as %s, %v", now, err)
	}
}

func TestSinceWhenAnActionWaitsIsKeptWhateverTheReasonBecomes(t *testing.T) {
	held := func(preflight, reason string) *ActionHeld {
		return &ActionHeld{Step: "a", Preflight: preflight, Reason: reason}
	}
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	r := folded(t, ActionRecord{}, planOfTwo, held("P", "3 of 4"), held("P", "2 of 4"))
	if since := r.HeldSince["a"]; !since.Equal(at(2)) {
		t.Errorf("held since %s, want the first time", since)
	}
	if r = folded(t, r, held("Q", "other")); !r.HeldSince["a"].Equal(at(4)) {
		t.Errorf("held by another since %s", r.HeldSince["a"])
	}
	for name, ends := range map[string]Payload{
		"released": &ActionReleased{Step: "a", Preflight: "Q"}, "started": &StepStarted{Step: "a", Attempt: 1}, "done": &StepDone{Step: "a"},
		"retried": &ActionRetried{}, "cancelled": &ActionCancelling{},
	} {
		ended := folded(t, ActionRecord{}, planOfTwo, held("Q", "other"), &ActionStalled{Step: "b"}, ends)
		if len(ended.HeldSince) > 0 || len(ended.Holds) > 0 {
			t.Errorf("%s: it is still held since %v", name, ended.HeldSince)
		}
		if freed := name == "retried" || name == "cancelled"; ended.StalledAt.IsZero() != freed || !freed && !ended.StalledAt.Equal(at(3)) {
			t.Errorf("%s: stalled since %s", name, ended.StalledAt)
		}
	}
}
