package minio

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// TestAPurgeOfTheSourcesNodeHoldsIt: with the pod's absence named, and its data copied as far
// as it was.
func TestAPurgeOfTheSourcesNodeHoldsIt(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				b.Stick(true)
				b.Remove(minio.NodeRef("a"))
				b.KillSingle()
				b.held(step, MinioSourceRuns, "standalone MinIO, which has all data, does not serve: Deployment minio has no pod")
				b.backs()
				if n := b.Calls("patch services"); n != 0 {
					t.Errorf("the Service was patched %d times", n)
				}
				b.slow(false)
				b.Put(minio.NodeRef("a"), `{"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
				b.Stick(false)
				b.Retry(r)
				b.ends(r, handedOver)
			})
		})
	}
}

func TestANodeOfTwoReplicasThatIsLostStopsNothing(t *testing.T) {
	for _, step := range []string{journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				b.Silence(1, true)
				b.Silence(4, true)
				b.slow(false)
				b.ends(r, handedOver)
			})
		})
	}
}

// TestADiskThatFillsAlthoughItWasForcedStallsItLoudly: the Service leads to the single MinIO.
func TestADiskThatFillsAlthoughItWasForcedStallsItLoudly(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		for i := range 100 {
			b.Source.Write(plain, fmt.Sprintf("object-%03d", i), "content", s3.Attributes{}, time.Now())
		}
		b.Fill(5)
		b.asks()
		r := b.start()
		b.held(journal.StepCopyMinio, MinioRoom, "has room for 5 bytes")
		b.Fill(0)
		b.force(r)
		b.Pass(15 * time.Minute)
		if stalled := b.Record().Stalled; stalled == nil || !strings.Contains(stalled.Reason, s3.ErrFull.Error()) {
			t.Errorf("it says %+v", stalled)
		}
		b.backs()
		b.Fill(1 << 30)
		b.Retry(r)
		b.ends(r, handedOver)
	})
}

// TestTheSourcesPodThatGoesInTheOutageIsWaitedFor: as long as there is time.
func TestTheSourcesPodThatGoesInTheOutageIsWaitedFor(t *testing.T) {
	inADuo(t, func(b *duo) {
		r := b.start()
		b.comes("noted cut-over")
		for range 40 {
			if pods := b.SinglePods(); pods[0] == "minio-5d9c-2" {
				break
			}
			b.Pass(100 * time.Millisecond)
		}
		b.KillSingle() // the one that took the place
		b.ends(r, handedOver)
		if b.Object(minio.SinglePodRef(miniosim.Namespace, "minio-5d9c-1")) != nil {
			t.Error("the first pod goes on")
		}
	})
}

// TestTheLastContentThereIsIsNotRemoved: a client rewrites metadata, and the source's content cannot be read any more.
func TestTheLastContentThereIsIsNotRemoved(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("rots", nil)
		b.Source.Write("rots", "a", "text", s3.Attributes{}, time.Now())
		d := &disturbed{opened: func(bucket string) error {
			if bucket == "rots" {
				return errors.New("read quorum could not be achieved")
			}
			return nil
		}}
		b.Cordon("a", true)
		r := b.disturb(d)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		d.is.Store(true)
		b.Source.Write("rots", "a", "text", s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": "b"}}, time.Now())
		b.Cordon("a", false)
		b.Pass(3 * time.Hour)
		if has := b.Target.Dump(); !strings.Contains(has, `"a" null`) || b.Record().Ended != nil {
			t.Errorf("%s, and ha-minio has\n%s", b.LastLine(), has)
		}
		b.backs()
		d.is.Store(false)
		b.Retry(r)
		b.ends(r, handedOver)
	})
}
