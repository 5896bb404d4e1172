package purge

import (
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// unlisted is the part of a node in Rook that has nothing of it.
func unlisted() (node kube.Node, rook *rooksim.Rook, part storagePart) {
	api, rook := kubesim.New(), rooksim.New()
	rook.ListNode("other")
	return api.AddNode("x1", journal.RoleWorker), rook, storagePart{Storage: Storage{Ceph: cephsim.New(), Rook: rook}, api: api}
}

// TestAnEntryThatComesAfterThePlanIsRemovedToo: an EKCO that was adding the node is done by the
// time that the step runs.
func TestAnEntryThatComesAfterThePlanIsRemovedToo(t *testing.T) {
	node, rook, part := unlisted()
	record := journal.ActionRecord{Subject: journal.NodeSubject(node.Name, node.UID)}
	facts := Facts{Node: identityOf(node)}
	if err := part.capture(t.Context(), record, &facts); err != nil {
		t.Fatal(err)
	}
	plan, err := part.plan(record, facts)
	if err != nil || len(plan.Steps) != 1 || plan.Steps[0].ID != doesRemoveEntry {
		t.Fatalf("%v: the plan is %+v", err, plan)
	}
	if record.Plan.Facts, err = json.Marshal(facts); err != nil {
		t.Fatal(err)
	}
	step := actions.StepContext{Action: record, Planned: plan.Steps[0]}
	proves := func(done bool) {
		t.Helper()
		if proof, err := removeEntry(part).Prove(t.Context(), step); err != nil || proof.Done != done {
			t.Errorf("%v: the proof is %+v", err, proof)
		}
	}
	proves(true)
	rook.ListNode("x1")
	proves(false)
	if _, err := removeEntry(part).Do(t.Context(), step); err != nil {
		t.Error(err)
	}
	proves(true)
	if entry := rook.Entry("x1"); entry != "" {
		t.Errorf("the CephCluster lists %s", entry)
	}
}

// TestWhereNobodyAddsNodesAPurgeDoesNotLookForOneThatIsNotListed: the list is a user's, or all
// nodes are used, or Rook is nobody's to manage.
func TestWhereNobodyAddsNodesAPurgeDoesNotLookForOneThatIsNotListed(t *testing.T) {
	for name, prepare := range map[string]func(*rooksim.Rook, *Storage){
		"the list is the user's": func(_ *rooksim.Rook, storage *Storage) { storage.UserManaged = true },
		"Rook is not managed":    func(_ *rooksim.Rook, storage *Storage) { storage.NodeListOnlyOnRequest = true },
		"all nodes are used":     func(rook *rooksim.Rook, _ *Storage) { rook.UseAllNodes(true) },
	} {
		t.Run(name, func(t *testing.T) {
			node, rook, part := unlisted()
			prepare(rook, &part.Storage)
			facts, err := part.readRook(t.Context(), journal.ActionRecord{}, identityOf(node))
			if err != nil || facts.Entry != nil || facts.EntryKept != "" {
				t.Errorf("%v: found is %+v", err, facts)
			}
		})
	}
}
