package mirror_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
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
	m.Update(actions, "c1", journal.Carried{})
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

func TestSmallActionsNeedOneConfigMap(t *testing.T) {
	_, cluster := mirrored(t, bulky("a", journal.ActionPurgeNode, 10, 5, 1000))
	got := content(t, cluster)
	if len(got.Parts) != 0 || len(got.LeftOut) != 0 || len(got.Actions[0].Steps["step-0"].Outputs) < 1000 {
		t.Errorf("parts %+v, left out %q", got.Parts, got.LeftOut)
	}
}

// TestNothingOfAnActionIsLeftOut has an action that is larger than a ConfigMap, with names of several bytes
// a character, and one that was answered many warnings.
func TestNothingOfAnActionIsLeftOut(t *testing.T) {
	large := bulky("a", journal.ActionPurgeNode, 60, 40, 10_000)
	for id, step := range large.Steps {
		step.Outputs = json.RawMessage(`"` + strings.Repeat("ж", 20_000) + `"`)
		large.Steps[id] = step
	}
	large.Request.Input = journal.PurgeInput{Live: true}
	warned := bulky("b", journal.ActionPurgeNode, 10, 5, 1000)
	for i := range 32 {
		warned.Warned = append(warned.Warned, journal.Warning{Preflight: "P", Text: fmt.Sprint(i, strings.Repeat("x", 10<<10))})
	}
	pods := make([]journal.PodRef, 3000)
	for i := range pods {
		pods[i] = journal.PodRef{Namespace: "default", Name: strings.Repeat("w", 400) + fmt.Sprint(i), UID: fmt.Sprint("uid-", i)}
	}
	listing := open("c", 1)
	listing.Kind, listing.Planned, listing.Request.Kind = journal.ActionClearNode, true, journal.ActionClearNode
	listing.Request.Input = journal.ClearInput{Pods: pods}
	want := []journal.ActionRecord{large, warned, listing}
	_, cluster := mirrored(t, want...)
	got := content(t, cluster)
	if got.Format != 3 || len(got.LeftOut) != 0 || len(got.Actions) != len(want) {
		t.Fatalf("format %d, left out %q, %d actions", got.Format, got.LeftOut, len(got.Actions))
	}
	for i := range want {
		before, _ := json.Marshal(want[i])
		if after, _ := json.Marshal(got.Actions[i]); !bytes.Equal(before, after) {
			t.Errorf("action %s is not what it was", want[i].ID)
		}
	}
}

func TestWhatFindsNoSpaceIsNamedAndPurgesComeFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		clearing := bulky("clear", journal.ActionClearNode, 50, 0, 100_000)
		purging := bulky("purge", journal.ActionPurgeNode, 50, 0, 100_000)
		small := bulky("small", journal.ActionClearNode, 1, 0, 10)
		small.RequestedAt = time.Unix(1, 0)
		m := run(t, cluster, "j1", mirror.Expendable(journal.ActionClearNode))
		m.Update([]journal.ActionRecord{clearing, small, purging}, "c1", journal.Carried{})
		for id, want := range map[string]error{"clear": mirror.ErrNoSpace, "purge": nil, "small": nil} {
			if err := m.Ready(t.Context(), id, "purge", time.Minute); !errors.Is(err, want) {
				t.Errorf("%s is ready: %v, want %v", id, err, want)
			}
		}
		got := content(t, cluster)
		if ids(got.Actions) != "purge@1 small@1" || !slices.Equal(got.LeftOut, []string{"clear"}) || !slices.Equal(m.Missing(), got.LeftOut) {
			t.Errorf("kept %q, left out %q, missing %q", ids(got.Actions), got.LeftOut, m.Missing())
		}
		m.Update([]journal.ActionRecord{clearing, small}, "c1", journal.Carried{})
		if err := m.Ready(t.Context(), "clear", "purge", time.Minute); err != nil || len(m.Missing()) != 0 {
			t.Errorf("once there is space: %v, missing %q", err, m.Missing())
		}
	})
}

func TestActionsThatCannotBeWrittenAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		synctest.Wait()
		cluster.Outage(true)
		m.Update([]journal.ActionRecord{open("a", 2), open("b", 3)}, "c1", journal.Carried{})
		letPass(time.Minute)
		if got := m.Missing(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("missing are %q", got)
		}
	})
}

// TestAStormOfActionsIsSmall is the mirror of 100 purges with 30 steps each.
func TestAStormOfActionsIsSmall(t *testing.T) {
	raw, cluster := mirrored(t, storm(100, 1)...)
	size := len(raw)
	for _, part := range cluster.Parts() {
		size += len(part)
	}
	if size > 3<<20 || len(cluster.Parts()) < 4 {
		t.Errorf("the mirror has %d bytes in %d parts", size, len(cluster.Parts()))
	}
}

// TestMirrorDoesNotGrowWithNodes: the target is 3 MiB for 100 open actions among 5,000 nodes.
func TestMirrorDoesNotGrowWithNodes(t *testing.T) {
	if few, many := foldedSize(t, 100), foldedSize(t, 5000); many > 3<<20 || many > few+1<<10 {
		t.Errorf("the mirror of 100 actions has %d bytes among 100 nodes, and %d among 5,000", few, many)
	}
}

// foldedSize returns the size of the mirror of 100 actions and pauses, in a journal that knows that many nodes.
func foldedSize(t *testing.T, nodes int) int {
	t.Helper()
	drafts := []journal.Draft{{Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "cli:root@p1", Payload: journal.PauseSet{Reason: "new switch"}}}
	for i := range nodes {
		subject := journal.NodeSubject(fmt.Sprintf("worker-%04d", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		drafts = append(drafts, journal.Draft{Type: journal.TypeNodeObserved, Subject: subject, Actor: "observer/node", Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}})
	}
	for i, action := range storm(100, 1) {
		action.Subject = drafts[1+i].Subject
		drafts = append(drafts, journal.Draft{
			Type: journal.TypeActionAdopted, Subject: action.Subject, Action: action.ID, Actor: "operator",
			Payload: journal.ActionAdopted{Record: action, JournalID: "other"},
		}, journal.Draft{Type: journal.TypePauseSet, Subject: action.Subject, Actor: "cli:root@p1", Payload: journal.PauseSet{Reason: "new disk"}})
	}
	store := memory.New(memory.Clock(func() time.Time { return time.Unix(1, 0) })) // all times have the same number of digits
	if _, err := store.Append(t.Context(), drafts...); err != nil {
		t.Fatal(err)
	}
	state := fsm.NewState(fsmnode.Capability())
	for event, err := range store.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		state.Apply(event)
	}
	cluster := kubesim.New()
	m := run(t, cluster, "j1")
	m.Update(state.OpenActions(), "c1", state.Carried())
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := content(t, cluster); len(got.Actions) != 100 || len(got.Pauses) != 101 || len(state.Problems) > 0 {
		t.Errorf("the mirror has %d actions and %d pauses; problems %q", len(got.Actions), len(got.Pauses), state.Problems)
	}
	raw, _, err := cluster.ReadMirror(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := len(raw)
	for _, part := range cluster.Parts() {
		size += len(part)
	}
	return size
}

// storm returns that many open actions of 15 kB each.
func storm(actions int, seq uint64) (open []journal.ActionRecord) {
	for i := range actions {
		record := bulky(fmt.Sprintf("purge-worker-%d", i), journal.ActionPurgeNode, 30, 15, 250)
		record.LastSeq = seq
		open = append(open, record)
	}
	return open
}
