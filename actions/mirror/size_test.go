package mirror_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

const limit = 900 << 10

// bulky returns an action of that many steps, the first of which are done, each
// step with that much input and output.
func bulky(id string, kind journal.ActionKind, steps, done, bytes int) journal.ActionRecord {
	record := open(id, 1)
	record.Kind, record.Planned, record.Steps = kind, true, map[string]journal.StepRecord{}
	filler := json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`)
	for i := range steps {
		step := fmt.Sprintf("step-%d", i)
		record.Plan.Steps = append(record.Plan.Steps, journal.PlannedStep{ID: step, Does: "act", Input: filler})
		if i < done {
			record.Steps[step] = journal.StepRecord{Attempts: 1, DoneAt: time.Unix(1, 0), Outputs: filler}
		}
	}
	return record
}

// mirrored returns what of the actions ends up in the mirror.
func mirrored(t *testing.T, actions ...journal.ActionRecord) (raw []byte, cluster *kubesim.Cluster) {
	t.Helper()
	cluster = kubesim.New()
	m := run(t, cluster, "j1", mirror.Expendable(journal.ActionClearNode))
	m.Update(actions, "c1")
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, _, err := cluster.ReadMirror(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) >= limit {
		t.Errorf("the mirror has %d bytes", len(raw))
	}
	return raw, cluster
}

func TestSmallActionsAreMirroredWhole(t *testing.T) {
	_, cluster := mirrored(t, bulky("a", journal.ActionPurgeNode, 10, 5, 1000))
	got := content(t, cluster)
	if len(got.Trimmed) != 0 || len(got.LeftOut) != 0 || len(got.Actions[0].Steps["step-0"].Outputs) < 1000 {
		t.Errorf("trimmed %q, left out %q", got.Trimmed, got.LeftOut)
	}
}

func TestOutputsOfDoneStepsGoFirst(t *testing.T) {
	_, cluster := mirrored(t, bulky("a", journal.ActionPurgeNode, 60, 40, 10_000))
	got := content(t, cluster)
	if want := []string{"outputs and errors of done steps"}; !slices.Equal(got.Trimmed, want) {
		t.Errorf("trimmed %q, want %q", got.Trimmed, want)
	}
	action := got.Actions[0]
	if len(action.Steps["step-0"].Outputs) != 0 || !action.Steps["step-0"].Done() || len(action.Plan.Steps[0].Input) == 0 {
		t.Errorf("a done step is kept as %+v", action.Steps["step-0"])
	}
}

func TestPlanDetailsOfDoneStepsGoNextAndOpenStepsKeepTheirs(t *testing.T) {
	_, cluster := mirrored(t, bulky("a", journal.ActionPurgeNode, 120, 80, 10_000))
	got := content(t, cluster)
	if len(got.Trimmed) != 2 || len(got.LeftOut) != 0 {
		t.Errorf("trimmed %q, left out %q", got.Trimmed, got.LeftOut)
	}
	steps := got.Actions[0].Plan.Steps
	if len(steps) != 120 || len(steps[79].Input) != 0 || len(steps[80].Input) < 10_000 {
		t.Errorf("%d steps; input of the last done one %d bytes, of the first open one %d", len(steps), len(steps[79].Input), len(steps[80].Input))
	}
}

func TestAnsweredWarningsGoBeforeAWholeAction(t *testing.T) {
	small := bulky("a", journal.ActionPurgeNode, 10, 5, 1000)
	long := strings.Repeat("x", 100<<10)
	for i := range 32 {
		small.Warned = append(small.Warned, journal.Warning{Preflight: "P", Text: fmt.Sprint(i, long)})
	}
	_, cluster := mirrored(t, small)
	got := content(t, cluster)
	if len(got.LeftOut) != 0 || len(got.Actions) != 1 || len(got.Actions[0].Warned) != 0 {
		t.Errorf("left out %q", got.LeftOut)
	}
	if len(got.Actions[0].Plan.Steps[9].Input) < 1000 {
		t.Error("an open step lost its input")
	}
}

func TestWhatFindsNoSpaceIsNamedAndPurgesComeFirst(t *testing.T) {
	clearing := bulky("clear", journal.ActionClearNode, 60, 0, 10_000)
	purging := bulky("purge", journal.ActionPurgeNode, 60, 0, 10_000)
	small := bulky("small", journal.ActionClearNode, 1, 0, 10)
	small.RequestedAt = time.Unix(1, 0)
	_, cluster := mirrored(t, clearing, small, purging)
	got := content(t, cluster)
	if ids(got.Actions) != "purge@1 small@1" || !slices.Equal(got.LeftOut, []string{"clear"}) {
		t.Errorf("kept %q, left out %q", ids(got.Actions), got.LeftOut)
	}
}
