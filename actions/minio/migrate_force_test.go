package minio

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// claimKept is the end of a migration that went without the last of the single MinIO.
const claimKept = `the Service leads to "ha-minio", Deployment false, claim true`

func (b *duo) saysClaimKept() {
	b.T.Helper()
	story := strings.Join(b.Story(), "\n")
	if !strings.Contains(story, "the claim minio-pv-claim is kept") {
		b.T.Errorf("nobody is told that the claim is kept:\n%s", story)
	}
}

// cordoned is a migration that has copied everything, and whose switch waits for the node of the single
// MinIO.
func cordoned(w *actionstest.World) (*duo, *actionstest.Running) {
	w.T.Helper()
	b := grown(w)
	b.Cordon("a", true)
	b.asks()
	r := b.start()
	b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
	return b, r
}

func TestAMigrationIsForcedPastAPodThatCannotBeReplaced(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("acts", acts)
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Retry(r) // without force it holds
		b.Pass(time.Minute)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		served := b.SinglePods()
		b.force(r)
		b.comes("done cut-over")
		b.Pass(5 * time.Second)
		for _, pod := range served {
			if b.Object(minio.SinglePodRef(miniosim.Namespace, pod)) != nil {
				t.Errorf("pod %s, to which clients are connected, goes on", pod)
			}
		}
		b.ends(r, claimKept)
		b.saysClaimKept()
		b.settled()
	})
}

// acts are settings that act by themselves, which are set last.
var acts = s3.Settings{
	s3.Versioning: "<suspended/>", s3.ObjectLock: "<Rule>10 days</Rule>", s3.Lifecycle: "<expire/>", s3.Notification: "<tell/>", s3.Quota: `{"quota":1000}`,
}

// settled expects that the highly available one has all settings that act by themselves.
func (b *duo) settled() {
	b.T.Helper()
	for bucket, want := range map[string]s3.Settings{"acts": acts, kept: {s3.Versioning: s3.VersioningEnabled, s3.Lifecycle: "<expire/>"}} {
		if got, err := b.Target.Settings(b.T.Context(), bucket); err != nil || !maps.Equal(got, want) {
			b.T.Errorf("%v: the settings of bucket %s are %v, want %v", err, bucket, got, want)
		}
	}
}

func TestAMigrationIsForcedPastASourceThatIsLost(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("acts", acts)
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Stick(true)
		b.KillSingle()
		b.Retry(r)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "waits until it has lasted 5m0s")
		b.force(r) // that is no answer to what comes of it
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data at")
		b.Pass(time.Hour)
		b.backs()
		b.force(r)
		b.ends(r, claimKept)
		b.saysClaimKept()
		b.settled()
	})
}

// TestAForcedSwitchThatFailsTakesBackWhatActsByItself: it would expire what is copied.
func TestAForcedSwitchThatFailsTakesBackWhatActsByItself(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("acts", acts)
		b.asks()
		api := &refusing{}
		api.switches.Store(true)
		r := b.refuses(api)
		b.comes("done catch-up")
		b.Stick(true)
		b.KillSingle()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data at")
		b.force(r)
		b.comes("failed cut-over")
		b.Pass(time.Second)
		b.backs()
		if got, err := b.Target.Settings(w.T.Context(), "acts"); err != nil || got[s3.Lifecycle]+got[s3.Notification]+got[s3.Quota] != "" || strings.Contains(got[s3.ObjectLock], "<Rule>") {
			t.Errorf("%v: the settings are %v", err, got)
		}
		api.switches.Store(false)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data at")
		b.force(r)
		b.ends(r, claimKept)
		b.settled()
	})
}

// TestWhatIsTooLongToBeKeptIsTold: the record is mirrored into a ConfigMap.
func TestWhatIsTooLongToBeKeptIsTold(t *testing.T) {
	keeps := actingSettings{of: map[string]map[string]string{}}
	keeps.add("none", s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.Policy: "a policy"})
	if len(keeps.of) > 0 || setByHand(journal.MinioCaughtUp{Acting: keeps.of}) != "" {
		t.Errorf("it keeps %v", keeps.of)
	}
	long := strings.Repeat("x", maxActingSettingsBytes/2)
	for _, bucket := range []string{"a", "b", "c"} {
		keeps.add(bucket, s3.Settings{s3.Lifecycle: long})
	}
	keeps.add("d", s3.Settings{s3.Quota: "small"})
	if len(keeps.of) != 2 || keeps.of["a"]["lifecycle"] != long || keeps.of["d"]["quota"] != "small" || keeps.skipped != 2 {
		t.Errorf("it keeps %d buckets, and %d not", len(keeps.of), keeps.skipped)
	}
	if text := setByHand(journal.MinioCaughtUp{Acting: keeps.of, Untold: keeps.skipped}); !strings.Contains(text, "suspended versioning of 2 buckets on ha-minio") {
		t.Errorf("it says %s", text)
	}
}

// TestWhatARecordOfBeforeDoesNotKeepIsTold: one that was looked at, and of which nothing acts,
// says so.
func TestWhatARecordOfBeforeDoesNotKeepIsTold(t *testing.T) {
	for text, silent := range map[string]bool{`{}`: false, `{"acting":null,"untold":2}`: false, `{"acting":{}}`: true} {
		var caught journal.MinioCaughtUp
		if err := json.Unmarshal([]byte(text), &caught); err != nil {
			t.Fatal(err)
		}
		said := setByHand(caught)
		if (said == "") != silent || !silent && !strings.Contains(said, "default retention and suspended versioning on ha-minio by hand") {
			t.Errorf("of %s it says %q", text, said)
		}
	}
	looked, err := json.Marshal(journal.MinioCaughtUp{Acting: map[string]map[string]string{}})
	if err != nil || !strings.Contains(string(looked), `"acting":{}`) {
		t.Errorf("%v: what was looked at leaves %s", err, looked)
	}
}

// TestWhatIsKeptTakesNoMoreRoomThanThereIs, written as a record is: quotes and brackets take more.
func TestWhatIsKeptTakesNoMoreRoomThanThereIs(t *testing.T) {
	keeps := actingSettings{of: map[string]map[string]string{}}
	for i := range 20 {
		keeps.add(fmt.Sprint("bucket", i), s3.Settings{s3.Lifecycle: strings.Repeat("<\"&>", 500)})
	}
	text, err := json.Marshal(keeps.of)
	if err != nil || len(text) > maxActingSettingsBytes || keeps.skipped == 0 || len(keeps.of) == 0 {
		t.Errorf("%v: %d bytes of %d buckets", err, len(text), len(keeps.of))
	}
}

// TestAForceIsForOneCauseAndOneAttempt: later it would switch without comparing.
func TestAForceIsForOneCauseAndOneAttempt(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.silence(true) // so that the attempt cannot be made
		b.held(journal.StepCutOverMinio, MinioHealthy, "")
		b.silence(false)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Cordon("a", false)
		b.Stick(true) // another cause, before the attempt that the force allows
		b.KillSingle()
		b.force(r)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod; both MinIOs last had the same data")
		b.backs()
		b.Stick(false)
		b.ends(r, handedOver)
	})
}

// TestAnAttemptThatDoesNotNeedTheForceUsesItUp: long after, nobody means it any more.
func TestAnAttemptThatDoesNotNeedTheForceUsesItUp(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.Cordon("a", false)
		b.Hang(true) // so that the attempt comes to nothing
		b.force(r)
		b.comes("failed cut-over")
		b.Hang(false)
		b.Pass(30 * time.Second)
		b.Cordon("a", true)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned; both MinIOs last had the same data")
		b.Pass(time.Hour)
		b.backs()
		b.Cordon("a", false)
		b.ends(r, handedOver)
	})
}

func TestAForcedAttemptThatFailsUsesTheForceUp(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.Fill(0)
		b.Source.Write(plain, "new", "text", s3.Attributes{}, time.Now())
		b.force(r)
		b.comes("failed cut-over")
		b.Fill(1 << 40)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Pass(time.Hour)
		b.backs()
		b.force(r)
		b.ends(r, claimKept)
	})
}

// TestAnotherStoreIsForcedPastWithoutBeingRead: its volume is lost, and the copy is all there is.
func TestAnotherStoreIsForcedPastWithoutBeingRead(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.Move(s3sim.New())
		b.KillSingle()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "its deployment id is store-2")
		b.force(r)
		b.ends(r, claimKept)
		if !strings.Contains(b.Target.Dump(), "document-0") {
			t.Errorf("the copy is gone:\n%s", b.Target.Dump())
		}
	})
}

// TestAForcedSwitchThatIsKilledEndsTheOldPodAtTheNextStart: their connections live on.
func TestAForcedSwitchThatIsKilledEndsTheOldPodAtTheNextStart(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.Forbid("delete pods")
		served := b.SinglePods()
		b.force(r)
		b.comes("failed cut-over")
		r.Halt()
		if b.ServiceLeads() != minio.App {
			t.Fatalf("the Service leads to %q", b.ServiceLeads())
		}
		b.Allow("delete pods")
		r = b.start()
		b.comes("done cut-over")
		b.Pass(5 * time.Second)
		if b.Object(minio.SinglePodRef(miniosim.Namespace, served[0])) != nil {
			t.Error("the old pod goes on")
		}
		b.ends(r, claimKept)
	})
}
