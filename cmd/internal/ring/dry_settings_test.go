package ring

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestADryRunWithItsOwnSettingsWritesNothingIntoARealAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.openClear().stop(); err != nil {
			t.Fatal(err)
		}
		open, effects := w.onlyOpen(), len(w.cluster.Effects())
		w.policy.DryRun, w.policy.ClearDeadNodes = true, false
		in := w.start(nil)
		pass(time.Hour)
		w.wantUntouched(open.ID, open.LastSeq, effects)
		mustStop(t, in)
	})
}
