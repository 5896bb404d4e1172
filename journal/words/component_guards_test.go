package words

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestAComponentWithoutAMachineHasNothingOfItsActions(t *testing.T) {
	v := New(
		Component{Name: "cupboard", Actions: []Action{{Kind: "purge-node"}}},
		Component{Name: "lamp", Machine: "lamp", Actions: []Action{{Kind: "light-lamp"}}},
	)
	asked := ""
	kindOf := func(action string) journal.ActionKind { asked += action + ","; return "purge-node" }
	for _, test := range []struct {
		component string
		event     journal.Event
		payload   journal.Payload
		want      bool
	}{
		{"cupboard", journal.Event{Type: journal.TypeStepDone, Action: "purge-w1-1"}, &journal.StepDone{}, false},
		{"lamp", journal.Event{Type: journal.TypePolicyLifted}, &journal.PolicyLifted{Kind: "light-lamp"}, true},
		{"lamp", journal.Event{Type: journal.TypePauseSet}, &journal.PauseSet{}, false},
		{"lamp", journal.Event{Type: journal.TypeActionRefused, Action: "x"}, &journal.ActionRefused{Kind: "light-lamp"}, true},
		{"lamp", journal.Event{Type: journal.TypeStepDone, Action: "purge-w1-1"}, &journal.StepDone{}, false},
	} {
		if got := v.Belongs(test.component, journal.Decoded{Event: test.event, Body: test.payload}, kindOf); got != test.want {
			t.Errorf("%s of %s: %v", test.event.Type, test.component, got)
		}
	}
	if asked != "purge-w1-1," {
		t.Errorf("asked was for the kinds of %q", asked)
	}
	if types := v.Types(""); len(types) != 0 {
		t.Errorf("no component has %q", types)
	}
}

func TestAStepThatIsCutShortHasNotFailed(t *testing.T) {
	short := &journal.StepFailed{Step: "set", Attempt: 1, Error: "cut short: the action was cancelled", CutShort: true}
	e := journal.Decoded{Event: journal.Event{Type: journal.TypeStepFailed, Action: "set-1", Time: time.Unix(9, 0)}, Body: short}
	if got := New().Sentence(e); !strings.Contains(got, "set ended: cut short") || strings.Contains(got, "failed") || strings.Contains(got, "try") {
		t.Errorf("it reads %q", got)
	}
	if line := logFailed(e.Event, short); line.Message != "step ended" || line.Level != slog.LevelInfo {
		t.Errorf("it is logged as %+v", line)
	}
}

func TestAStepThatWaitsWithTheRestHasNotFailed(t *testing.T) {
	failed := &journal.StepFailed{Step: "set", Attempt: 1, Error: "1 of 3 nodes are not done: n02 waits", Waits: true, NextTry: time.Unix(9, 0)}
	e := journal.Decoded{Event: journal.Event{Type: journal.TypeStepFailed, Action: "set-1", Time: time.Unix(9, 0)}, Body: failed}
	if got := New().Sentence(e); !strings.Contains(got, "the rest of set waits") || strings.Contains(got, "next try") {
		t.Errorf("it reads %q", got)
	}
	line := logFailed(e.Event, failed)
	if line.Message != "the rest of the step waits" {
		t.Errorf("it is logged as %+v", line)
	}
}

func TestAStepThatGoesOnByForceSaysWhy(t *testing.T) {
	for outputs, want := range map[string]string{`{"forced":"osd.3 is not safe"}`: "overrides a refusal: osd.3 is not safe", `{"node":"w1"}`: "recorded its progress", `[1]`: "recorded its progress"} {
		e := journal.Decoded{Event: journal.Event{Type: journal.TypeStepNoted, Action: "set-1"}, Body: &journal.StepNoted{Step: "set", Outputs: []byte(outputs)}}
		if got := New().Sentence(e); !strings.Contains(got, want) {
			t.Errorf("with %s it reads %q", outputs, got)
		}
	}
}
