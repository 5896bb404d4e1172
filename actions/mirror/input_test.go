package mirror_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheMirrorOfAnOlderEKCOSaysWhatItsActionsNeed(t *testing.T) {
	cluster := kubesim.New()
	cluster.SetMirror([]byte(`{"format":1,"journal_id":"theirs","actions":[` +
		`{"id":"c","kind":"clear-node","request":{"kind":"clear-node","reason":"r","pods":[{"namespace":"n","name":"p","uid":"u","deletion_timestamp":"2026-01-02T03:04:05Z"}]}},` +
		`{"id":"p","kind":"purge-node","request":{"kind":"purge-node","reason":"r","live":true,"maintain_rook_storage_nodes":false,"node":{"role":"primary"}}}]}`))
	drafts, err := mirror.Adopt(content(t, cluster), nil, "own", "c1")
	if err != nil || len(drafts) != 2 {
		t.Fatalf("got %q, %v", tell(drafts), err)
	}
	no := false
	for i, want := range []any{
		journal.ClearInput{Pods: []journal.PodRef{{Namespace: "n", Name: "p", UID: "u", DeletionTimestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}},
		journal.PurgeInput{Live: true, MaintainRook: &no, Node: &journal.NodeFacts{Role: journal.RolePrimary}},
	} {
		event, err := drafts[i].Event()
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := event.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, adopted.(*journal.ActionAdopted).Record.Request.Input); diff != "" || event.Version != 2 {
			t.Errorf("adopted in version %d (-want +got):\n%s", event.Version, diff)
		}
	}
}

// TestAnOlderEKCOIsGivenOnlyWhatItReadsWhole: it would not see an input, and act as
// if nothing particular had been asked for.
func TestAnOlderEKCOIsGivenOnlyWhatItReadsWhole(t *testing.T) {
	asked := open("b", 1)
	asked.Request.Input = journal.PurgeInput{Live: true}
	for format, actions := range map[int][]journal.ActionRecord{1: {open("a", 1)}, 2: {open("a", 1), asked}} {
		raw, _ := mirrored(t, actions...)
		var written struct {
			Format int `json:"format"`
		}
		if err := json.Unmarshal(raw, &written); err != nil || written.Format != format {
			t.Errorf("%s is of format %d, want %d (%v)", ids(actions), written.Format, format, err)
		}
	}
}
