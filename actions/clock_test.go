package actions_test

import (
	"context"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// by returns a configuration whose journal is written by a clock that is ahead
// of the process's.
func by(cfg actions.Config, ahead time.Duration) actions.Config {
	cfg.Now = func() time.Time { return time.Now().Add(ahead) }
	return cfg
}

func TestAClockSetBackKeepsNoFailedStepFromItsNextTry(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{}
		interrupted(w, step("a"))
		w.Append("operator", journal.StepFailed{Step: "a", Attempt: 1, Error: "no", NextTry: time.Now().Add(3 * time.Hour)}, journal.TypeStepFailed)
		if took := w.Start(w.Config(k.kinds())).End(); took > 2*time.Minute {
			t.Errorf("it was tried again after %s, the longest rest is 2m", took)
		}
	})
}

func TestATimeOnRecordIsByTheJournalsClockAndARestIsNot(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"it is ahead": 3 * time.Hour, "it is behind": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				tries := 0
				k := &script{steps: []journal.PlannedStep{step("a")}}
				k.do = func(context.Context, string) error {
					if tries++; tries == 1 {
						return errBroken
					}
					return nil
				}
				w.requestTest()
				failed := time.Now()
				if took := w.Start(by(w.Config(k.kinds()), ahead)).End(); took > 10*time.Second {
					t.Errorf("the second try came after %s", took)
				}
				for _, event := range w.Events() {
					payload, err := event.Decode()
					if err != nil {
						t.Fatal(err)
					}
					if p, ok := payload.(*journal.StepFailed); ok {
						if rest := p.NextTry.Sub(failed.Add(ahead)); rest <= 0 || rest > 10*time.Second {
							t.Errorf("on record is a next try in %s by the journal's clock", rest)
						}
					}
				}
			})
		})
	}
}
