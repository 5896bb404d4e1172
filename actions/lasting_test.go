package actions_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestWhatEKCOWentOnForOnceHasToLastAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cannot := "Ceph cannot recover by itself: no third host is left"
		waiting := step("a")
		waiting.Preflights = []string{"Stuck"}
		k := &script{steps: []journal.PlannedStep{waiting}}
		w.requestTest()
		w.Append("operator", journal.ActionWarned{Preflight: "Stuck", Warning: cannot, Answer: journal.AnswerAutomatic}, journal.TypeActionWarned)
		stuck := actionstest.Always(actions.PassBecause(cannot).OnceLasting(30*time.Second, cannot))
		if took := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"Stuck": stuck})).End(); took < 30*time.Second {
			t.Errorf("it went on after %s", took)
		}
	})
}
