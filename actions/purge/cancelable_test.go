package purge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheTimeToCancelEndsAlsoIfTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for since, done := range map[time.Duration]bool{
			0: false, TimeToCancel - 1: false, TimeToCancel: true, time.Hour: true, -1: true, -time.Hour: true,
		} {
			step := actions.StepContext{Action: journal.ActionRecord{RequestedAt: time.Now().Add(-since)}}
			if proof, err := (waitForCancel{}).Prove(t.Context(), step); err != nil || proof.Done != done {
				t.Errorf("%s after the request: %+v, %v", since, proof, err)
			}
		}
	})
}
