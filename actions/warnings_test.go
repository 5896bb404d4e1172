package actions_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestAWarningThatSaysSomethingElseIsRecordedAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		said := []string{"cannot tell: no answer", "1 of 3 is left", "2 of 3 are left", "1 of 3 are left", "it is gone for good", "cannot tell: no answer"}
		keys := []string{"unknown", "one", "some", "some", "gone", "unknown"}
		k := &script{}
		for i := range said {
			step := guarded(string(rune('a'+i)), "Doubts")
			if i > 0 {
				step.After = []string{string(rune('a' + i - 1))}
			}
			k.steps = append(k.steps, step)
		}
		asked := 0
		doubts := actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			asked++
			return actions.Warn(said[asked-1]).About(keys[asked-1])
		})
		cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"Doubts": doubts})
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
		w.RunToEnd(cfg)
		var got []string
		for _, line := range w.Story() {
			if strings.HasPrefix(line, "warned ") {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(line, "warned Doubts: "), " (no terminal)"))
			}
		}
		want := []string{said[0], said[1], said[2], said[4]}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
	})
}

func TestAnAnswerIsComparedByItsKeyWhateverTheWords(t *testing.T) {
	for name, test := range map[string]struct {
		answered journal.ActionWarned
		says     actions.Verdict
		news     bool
	}{
		"the key, in other words":           {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it pours").About("k"), false},
		"the words, with another key":       {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it rains").About("l"), true},
		"no key then and none now":          {journal.ActionWarned{Warning: "it rains"}, actions.Warn("it pours"), false},
		"no key then, one now":              {journal.ActionWarned{Warning: "it rains"}, actions.Warn("it rains").About("k"), true},
		"a key then, none now":              {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it rains"), true},
		"a key of another preflight's, too": {journal.ActionWarned{Preflight: "Y", Key: "k", Warning: "it rains"}, actions.Warn("it rains").About("k"), true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
				w.Request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
				test.answered.Preflight, test.answered.Answer = cmp.Or(test.answered.Preflight, "X"), "yes"
				w.Append("cli:me@here", test.answered, journal.TypeActionWarned)
				w.RunToEnd(w.guardedBy(k, actionstest.Always(test.says)))
				if got := w.Count("warned X: "+test.says.Reason+" (no terminal)") == 1; got != test.news {
					t.Errorf("recorded anew: %v, want %v; %q", got, test.news, w.Story())
				}
			})
		})
	}
}

func TestAHoldThatHadNoKeySaysItsReasonAtOnceWhereItHasOneNow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
		w.Append("operator", journal.ActionHeld{Preflight: "X", Step: "a", Reason: "3 are missing"}, journal.TypeActionHeld)
		r := w.Start(w.guardedBy(k, actionstest.Always(actions.Hold("2 are missing").About("missing"))))
		w.Pass(time.Minute)
		r.Halt()
		if held := w.Record().Holds["a"]; held.Reason != "2 are missing" || held.Key != "missing" {
			t.Errorf("held by %+v", held)
		}
	})
}
