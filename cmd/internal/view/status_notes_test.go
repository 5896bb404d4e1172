package view

import (
	"bytes"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// shown returns the line of the status that tells of a node with these taints.
func shown(t *testing.T, taints ...journal.Taint) string {
	t.Helper()
	return shownFacts(t, journal.NodeFacts{Role: journal.RoleWorker, Taints: taints})
}

func shownFacts(t *testing.T, facts journal.NodeFacts) string {
	t.Helper()
	state := fsm.NewState(fsmnode.Capability())
	state.Add(fsmnode.Machine, journal.NodeSubject("worker-2", "u"), fsmnode.Healthy, began)
	fsmnode.Of(state, "u").Facts = facts
	var out bytes.Buffer
	if err := Status(&out, api.StatusOf(state, fsm.Policy{}, began), "wide", StatusOptions{Words: vocabulary}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "worker-2") {
			return line
		}
	}
	t.Fatalf("no line of worker-2 in\n%s", out.String())
	return ""
}

func TestANodeThatIsNotReadySaysWhyInItsNotes(t *testing.T) {
	for _, test := range []struct {
		key, effect, want string
	}{
		{journal.TaintUnschedulable, "NoSchedule", "yes    cordoned"},
		{journal.TaintNotReady, "NoExecute", "no     its kubelet reports that it is not ready"},
		{journal.TaintNetworkUnavailable, "NoSchedule", "no     its network is not set up"},
		{journal.TaintUnreachable, "NoExecute", "no     unreachable"},
	} {
		if line := shown(t, journal.Taint{Key: test.key, Effect: test.effect}); !strings.Contains(line, test.want) {
			t.Errorf("%s: the line has no %q: %q", test.key, test.want, line)
		}
	}
}

func TestACordonedNodeSaysSoBesideWhatElseIsWrong(t *testing.T) {
	line := shown(t,
		journal.Taint{Key: journal.TaintUnreachable, Effect: "NoSchedule", TimeAdded: began},
		journal.Taint{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: began},
		journal.Taint{Key: journal.TaintUnschedulable, Effect: "NoSchedule"},
	)
	if want := "unreachable since " + words.Stamp(began) + ", cordoned\n"; !strings.HasSuffix(line, want) {
		t.Errorf("the line does not end in %q: %q", want, line)
	}
	if line := shown(t); !strings.HasSuffix(line, "yes\n") {
		t.Errorf("a ready node has notes: %q", line)
	}
}

func TestANodeThatFlapsSaysSoAndNotSinceWhenItIsLost(t *testing.T) {
	line := shownFacts(t, journal.NodeFacts{Role: journal.RoleWorker, Flapping: true, Taints: []journal.Taint{
		{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: began}, {Key: journal.TaintUnschedulable, Effect: "NoSchedule"},
	}})
	if want := "no     flapping: no action until it is stable, cordoned\n"; !strings.HasSuffix(line, want) {
		t.Errorf("the line does not end in %q: %q", want, line)
	}
}
