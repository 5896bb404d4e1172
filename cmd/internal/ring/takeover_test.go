package ring

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestAnActionThatIsUnderWayGetsNoPlanOfAnEKCOThatHasGoneQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.Forbid(kubesim.GetNodes) // it cannot be planned here
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(time.Second)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		open := w.onlyOpen()
		open.Planned, open.Plan = true, journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-node", Does: "delete-node", Irreversible: true}}}
		w.visit(open)
		w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{Reason: "test"}) // which is mirrored
		pass(time.Hour)
		if w.mirrored().JournalID == "visitor" {
			t.Fatal("nothing was taken over")
		}
		if n := len(w.events(journal.Query{Types: []journal.Type{journal.TypeActionPlanned}})); n != 0 {
			t.Errorf("it was planned %d times by another", n)
		}
		mustStop(t, in)
	})
}

func TestTheFirstMirrorAfterATakeoverHasWhatWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.start(nil)
		pass(time.Minute)
		visiting := journal.ActionRecord{
			ID: "purge-worker-3-9", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("worker-3", w.machine("worker-3").UID),
			RequestedBy: "cli:root@test", RequestedAt: time.Now(), LastSeq: 9,
			Request: journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true},
		}
		w.cluster.Forbid(kubesim.GetNodes) // it stays as it is
		w.visit(visiting)
		written := 0
		synctest.Wait() // nothing has an effect while it is set
		w.cluster.AfterEffect = func(effect string) {
			content, _, err := w.cluster.ReadMirror(t.Context())
			var now mirror.Content
			if effect != "write-mirror" || err != nil || json.Unmarshal(content, &now) != nil {
				return
			}
			written++
			has := slices.ContainsFunc(now.Actions, func(r journal.ActionRecord) bool { return r.ID == visiting.ID })
			if !has && len(now.Ended) == 0 {
				t.Errorf("the mirror has only %+v", now)
			}
		}
		w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{Reason: "test"}) // which is mirrored
		pass(time.Hour)
		synctest.Wait()
		if written == 0 {
			t.Error("nothing was taken over")
		}
		mustStop(t, in)
	})
}
