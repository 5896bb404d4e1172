package mirror_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/journal"
)

// TestAJournalThatLostEventsTakesBackAStepThatIsRepeated: fewer steps are done in the mirror than in the journal, which
// has no event of the action since.
func TestAJournalThatLostEventsTakesBackAStepThatIsRepeated(t *testing.T) {
	own := planned(open("a", 3))
	own.Steps = map[string]journal.StepRecord{"look": {Attempts: 1, DoneAt: time.Unix(1, 0)}, "delete-node": {Attempts: 1, Open: true}}
	mirrored := planned(open("a", 9))
	mirrored.Steps = map[string]journal.StepRecord{"look": {}, "delete-node": {Attempts: 1, Outputs: json.RawMessage(`{"noted":1}`)}}
	mirrored.Forced = []journal.Forced{{Preflight: "P"}}
	drafts, err := mirror.Adopt(mirrorOf("own", mirrored), []journal.ActionRecord{own}, "own", "c1", mirror.Lost(5))
	if err != nil || len(drafts) != 1 {
		t.Fatalf("got %q, %v", tell(drafts), err)
	}
	got := drafts[0].Payload.(journal.ActionAdopted).Record
	if got.Steps["look"].Done() || string(got.Steps["delete-node"].Outputs) != `{"noted":1}` || len(got.Forced) != 1 {
		t.Errorf("taken back is %+v", got)
	}
}
