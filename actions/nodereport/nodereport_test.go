package nodereport_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/nodereport"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

var worker = journal.ActionRecord{ID: "report-a-1", Kind: journal.ActionReportNode, Subject: journal.NodeSubject("a", "uid-a")}

// plan plans a report of a node in a cluster that the test has changed.
func plan(t *testing.T, change func(*hosttasksim.Cluster)) (journal.Plan, error) {
	t.Helper()
	c := hosttasksim.New("a")
	change(c)
	tasks := hosttask.New(c, c, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
	definition := nodereport.New(nodereport.Dependencies{Tasks: tasks, Objects: c, Image: "replicated/ekco:v1", Command: []string{"host-task", "node-report"}})
	return definition.Plan(t.Context(), worker)
}

func TestThePlanHasWhatTheNodeObjectSaysAndWhatIsRun(t *testing.T) {
	planned, err := plan(t, func(*hosttasksim.Cluster) {})
	if err != nil {
		t.Fatal(err)
	}
	report, err := nodereport.Of(planned.Facts, nil)
	if err != nil || report.Kubelet != "v1.36.0" || report.Kernel != "6.1.0" || report.ContainerRuntime != "containerd://1.6.20" {
		t.Errorf("it has %+v, %v", report, err)
	}
	if report.Host != nil || report.Missing != "" {
		t.Errorf("nobody has looked yet: %+v", report)
	}
	input := string(planned.Steps[0].Input)
	for _, part := range []string{`"node":"a"`, `"node_uid":"uid-a"`, `"image":"replicated/ekco:v1"`, `"args":["host-task","node-report"]`} {
		if !strings.Contains(input, part) {
			t.Errorf("the step's input has no %s: %s", part, input)
		}
	}
	if strings.Contains(input, `"write"`) || strings.Contains(input, `"privileged"`) {
		t.Errorf("who looks may change something: %s", input)
	}
}

// TestANodeThatIsAnotherOrGoneIsPlannedForWithoutWhatItIsNot: the step says what is wrong.
func TestANodeThatIsAnotherOrGoneIsPlannedForWithoutWhatItIsNot(t *testing.T) {
	for name, change := range map[string]func(*hosttasksim.Cluster){
		"gone":    func(c *hosttasksim.Cluster) { c.Delete("a") },
		"another": func(c *hosttasksim.Cluster) { c.Replace("a") },
	} {
		planned, err := plan(t, change)
		if err != nil || len(planned.Steps) != 2 || string(planned.Facts) != "{}" {
			t.Errorf("%s: %s, %d steps, %v", name, planned.Facts, len(planned.Steps), err)
		}
	}
}

func TestANodeThatMayNotBeReadHoldsItsReportAndSaysWhatLacks(t *testing.T) {
	_, err := plan(t, func(c *hosttasksim.Cluster) { c.Forbid("get nodes") })
	if !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "lacks the permission to get nodes") {
		t.Error(err)
	}
}

func TestWhatIsOnRecordIsReadOrSaysWhyNot(t *testing.T) {
	report, err := nodereport.Of(nil, json.RawMessage(`{"result":{"kernel":"6.1.0"}}`))
	if err != nil || report.Host == nil || report.Host.Kernel != "6.1.0" || report.Missing != "" {
		t.Errorf("it is %+v, %v", report, err)
	}
	for outputs, why := range map[string]string{`{"missing":"m"}`: "m", `{"left":"l"}`: "l"} {
		if report, err := nodereport.Of(json.RawMessage(`{"kubelet":"v1"}`), json.RawMessage(outputs)); err != nil || report.Missing != why || report.Host != nil || report.Kubelet != "v1" {
			t.Errorf("%s is %+v, %v", outputs, report, err)
		}
	}
	for facts, outputs := range map[string]string{`"f"`: ``, `{}`: `"o"`, `{"kubelet":""}`: `{"result":[]}`} {
		if report, err := nodereport.Of(json.RawMessage(facts), json.RawMessage(outputs)); err == nil {
			t.Errorf("%s and %s are %+v", facts, outputs, report)
		}
	}
}
