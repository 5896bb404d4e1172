package words

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

const workersLog = `level=INFO msg=planned steps=3
level=INFO msg=continuing preflight=P reason=w
level=WARN msg="continuing despite a warning" preflight=P warning=w answer=yes
level=WARN msg=held step=s preflight=P reason="r r"
level=INFO msg="no longer held" step=s preflight=P
level=WARN msg="will never remove this" what=osd.1 reason=r
level=INFO msg="step started" step=s attempt=2
level=INFO msg="step overrides a refusal" step=s attempt=2 reason=r
level=INFO msg="step done" step=s attempt=2 already_done=true dry_run=true
level=WARN msg="step not done" step=s attempt=2 reason=r
level=INFO msg="step done" step=s attempt=2 already_done=false dry_run=false
level=WARN msg="step failed" step=s attempt=3 error=e next_try_in=1.235s
level=ERROR msg="step failed for the last time" step=s attempt=3 error=e
level=INFO msg="the rest of the step waits" step=s attempt=3 left=e
level=ERROR msg="stalled; after repairing the cause, run: ekco retry" step=s reason=r
level=INFO msg=ended outcome=done reason=r
`

func TestWhatAWorkerLogsReadsAsItShould(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for _, p := range []journal.Payload{
		journal.ActionRequested{Kind: "x"},
		journal.ActionAdopted{},
		journal.ActionRetried{Reason: "x"},
		journal.ActionCancelling{Reason: "y"},
		journal.ActionJoined{},
		journal.ActionPlanned{Plan: journal.Plan{Steps: make([]journal.PlannedStep, 3)}},
		journal.ActionWarned{Preflight: "P", Warning: "w", Answer: journal.AnswerAutomatic},
		journal.ActionWarned{Preflight: "P", Warning: "w", Answer: "yes"},
		journal.ActionHeld{Preflight: "P", Step: "s", Reason: "r r"},
		journal.ActionReleased{Preflight: "P", Step: "s"},
		journal.ActionLeft{What: "osd.1", Reason: "r"},
		journal.StepStarted{Step: "s", Attempt: 2},
		journal.StepNoted{Step: "s", Attempt: 2, Outputs: []byte(`{"forced":"r"}`)},
		journal.StepNoted{Step: "s", Attempt: 2, Outputs: []byte(`{"node":"w1"}`)},
		journal.StepDone{Step: "s", Attempt: 2, AlreadyDone: true, DryRun: true},
		journal.StepDone{Step: "s", Attempt: 2, Outputs: []byte(`{"missing":"r"}`)},
		journal.StepDone{Step: "s", Attempt: 2, Outputs: []byte(`{"missing":["not a reason"]}`)},
		journal.StepFailed{Step: "s", Attempt: 3, Error: "e", NextTry: at.Add(1234567 * time.Microsecond)},
		journal.StepFailed{Step: "s", Attempt: 3, Error: "e"},
		journal.StepFailed{Step: "s", Attempt: 3, Error: "e", NextTry: at, Waits: true},
		journal.ActionStalled{Step: "s", Reason: "r"},
		journal.ActionEnded{Outcome: journal.OutcomeDone, Reason: "r"},
	} {
		if line, said := WorkerLine(journal.Event{Type: journal.TypeOf(p), Time: at}, p); said {
			log.Log(t.Context(), line.Level, line.Message, line.Attrs...)
		}
	}
	if diff := cmp.Diff(workersLog, out.String()); diff != "" {
		t.Error(diff)
	}
}
