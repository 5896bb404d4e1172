package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/nodereport"
	"github.com/replicatedhq/ekco/journal"
)

// reportingOperator has an action for each node that is asked for, whose events follow at once.
type reportingOperator struct {
	*fakeOperator
	t *testing.T

	mu   sync.Mutex
	seq  uint64
	all  []journal.Event
	more chan struct{}
	// outcome is what the step of a node leaves, ends how its action ends; both have a default.
	outcome map[string]string
	ends    map[string]journal.ActionEnded
	// refused are answers to requests, by the node's name, stalls what stalls.
	refused map[string]error
	stalls  map[string]bool
	// resumed were open before, and planned before anybody asked.
	resumed map[string]bool
	// silent answers no request for a node to its end.
	silent map[string]bool
	// quits has the stream end once this many requests were answered.
	quits int
	// open and most count actions.
	open, most int
}

func newReportingOperator(t *testing.T, nodes ...string) *reportingOperator {
	o := &reportingOperator{
		fakeOperator: &fakeOperator{}, t: t, more: make(chan struct{}), outcome: map[string]string{}, ends: map[string]journal.ActionEnded{},
		refused: map[string]error{}, stalls: map[string]bool{}, resumed: map[string]bool{}, silent: map[string]bool{},
	}
	for _, node := range nodes {
		o.status.Nodes = append(o.status.Nodes, api.NodeStatus{Name: node, UID: "u", State: fsmnode.Healthy})
	}
	return o
}

func (o *reportingOperator) write(node string, kind journal.Type, payload any) {
	o.seq++
	e := event(o.t, o.seq, "report-"+node, kind, payload)
	e.Subject = journal.NodeSubject(node, "u")
	o.all = append(o.all, e)
	close(o.more)
	o.more = make(chan struct{})
}

const plainOutcome = `{"result":{"kernel":"6.1.0","clock_ahead":"0s","disks":[{"directory":"/var/lib/ekco","size":42949672960,"free":21474836480}],
	"certificates":[{"path":"/etc/kubernetes/pki/apiserver.crt","subject":"kube-apiserver","not_after":"2027-01-10T12:00:00Z"},
		{"path":"/etc/kubernetes/pki/ca.crt","subject":"kubernetes","not_after":"2036-01-10T12:00:00Z","ca":true}],
	"ceph":[{"source":"/dev/rbd0","target":"/var/lib/kubelet/pods/x/volumes/pvc-1","type":"ext4"}]}}`

func (o *reportingOperator) Request(_ context.Context, r fsm.Request) (api.Admission, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, r)
	if err := o.refused[r.Name]; err != nil {
		return api.Admission{}, err
	}
	o.open++
	o.most = max(o.most, o.open)
	planned := journal.ActionPlanned{Plan: journal.Plan{Facts: json.RawMessage(`{"kernel":"6.1.0-old","kubelet":"v1.36.0","container_runtime":"containerd://1.6.20"}`)}}
	if !o.resumed[r.Name] { // else it was so before this command began
		o.write(r.Name, journal.TypeActionPlanned, planned)
	}
	if o.silent[r.Name] {
		return api.Admission{Action: "report-" + r.Name}, nil
	}
	switch {
	case o.stalls[r.Name]:
		o.write(r.Name, journal.TypeActionStalled, journal.ActionStalled{Step: "remove", Reason: "the pod stays"})
	default:
		outcome, end := o.outcome[r.Name], o.ends[r.Name]
		if outcome == "" {
			outcome = plainOutcome
		}
		if end.Outcome == "" {
			end.Outcome = journal.OutcomeDone
		}
		if outcome != "none" {
			o.write(r.Name, journal.TypeStepDone, journal.StepDone{Step: "report " + r.Name, Outputs: json.RawMessage(outcome)})
		}
		o.write(r.Name, journal.TypeStepDone, journal.StepDone{Step: "remove-host-task of report " + r.Name})
		o.write(r.Name, journal.TypeActionEnded, end)
	}
	o.open--
	return api.Admission{Action: "report-" + r.Name, Resumed: o.resumed[r.Name], FromSeq: o.seq}, nil
}

func (o *reportingOperator) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for i := 0; ; i++ {
			o.mu.Lock()
			for i == len(o.all) && follow {
				more, quits := o.more, o.quits > 0 && len(o.requests) >= o.quits
				o.mu.Unlock()
				if quits {
					yield(journal.Event{}, errors.New("it went away"))
					return
				}
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
				o.mu.Lock()
			}
			if i == len(o.all) {
				o.mu.Unlock()
				return
			}
			e := o.all[i]
			o.mu.Unlock()
			if query.Matches(e) && !yield(e, nil) {
				return
			}
		}
	}
}

// reportDesk is a desk beside the operator.
func reportDesk(t *testing.T, o *reportingOperator) *desk {
	d := newDesk(t, nil)
	d.app.dial = func(context.Context, string, string) (operator, error) { return o, nil }
	return d
}

func reportsOf(t *testing.T, d *desk) map[string]view.NodeReport {
	t.Helper()
	var reports view.NodeReports
	if err := json.Unmarshal(d.out.Bytes(), &reports); err != nil {
		t.Fatalf("%v: %s", err, d.out)
	}
	of := map[string]view.NodeReport{}
	complete := true
	for _, report := range reports.Nodes {
		of[report.Node] = report
		complete = complete && len(report.Missing) == 0
	}
	if complete != reports.Complete {
		t.Errorf("it is complete: %v, and says %v", complete, reports.Complete)
	}
	return of
}

func TestTheReportsOfAllPresentNodesAreATable(t *testing.T) {
	o := newReportingOperator(t, "worker-1", "worker-2")
	o.status.Nodes = append(o.status.Nodes, api.NodeStatus{Name: "old", State: fsmnode.Purged}, api.NodeStatus{Name: "left", State: fsmnode.Gone})
	d := reportDesk(t, o)
	d.expect(d.types("node-report", "--reason", "before the upgrade"), exitDone, "", "")
	want := `NODE      KERNEL  KUBELET  RUNTIME              CLOCK  EKCO FREE             ETCD FREE  CERTIFICATES                                 CEPH
worker-1  6.1.0   v1.36.0  containerd://1.6.20  0s     20.0 GiB of 40.0 GiB  -          2, the first expires 2027-01-10 (in 50d)  1 volume
worker-2  6.1.0   v1.36.0  containerd://1.6.20  0s     20.0 GiB of 40.0 GiB  -          2, the first expires 2027-01-10 (in 50d)  1 volume
`
	if got := d.out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") || d.errOut.Len() != 0 {
		t.Errorf("shown is\n%s\nwant\n%s\nand said %q", got, want, d.errOut)
	}
	for i, r := range o.requests {
		if r.Kind != journal.ActionReportNode || r.Name != fmt.Sprintf("worker-%d", i+1) || r.Reason != "before the upgrade" || !strings.HasPrefix(r.Actor, "cli:") {
			t.Errorf("asked for was %+v", r)
		}
	}
	d.expect(d.types("node-report", "-o", "wide"), exitDone, "/etc/kubernetes/pki/ca.crt", "")
	d.expect(d.types("node-report", "-o", "wide"), exitDone, "/var/lib/kubelet/pods/x/volumes/pvc-1", "")
}

func TestWhatCannotBeHadIsListedAndTheExitCodeSaysSo(t *testing.T) {
	o := newReportingOperator(t)
	o.outcome["away"] = `{"missing":"node away does not answer"}`
	o.outcome["left"] = `{"left":"node left was replaced by another of its name"}`
	o.outcome["part"] = `{"result":{"kernel":"6.1.0","missing":[{"what":"clock","why":"no route"}]}}`
	o.outcome["dry"], o.ends["dry"] = "none", journal.ActionEnded{Outcome: journal.OutcomeDryRun}
	o.outcome["ended"], o.ends["ended"] = "none", journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "not now"}
	o.outcome["stopped"], o.ends["stopped"] = "none", journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "cancelled by cli:root@p1"}
	o.outcome["rotten"] = `{"result":"nonsense"}`
	o.refused["unknown"] = fmt.Errorf("there is no node %q%w", "unknown", api.Hidden(api.ErrNotFound))
	o.stalls["stalled"] = true
	d := reportDesk(t, o)
	nodes := []string{"away", "left", "part", "dry", "ended", "stopped", "rotten", "unknown", "stalled", "good", "good"}
	d.expect(d.types(append([]string{"node-report", "-o", "json"}, nodes...)...), exitFailed, "", "")
	of := reportsOf(t, d)
	if len(of) != 10 {
		t.Errorf("there are %d reports", len(of))
	}
	for node, want := range map[string]nodereport.Missing{
		"away":    {What: "report", Why: "node away does not answer"},
		"left":    {What: "report", Why: "node left was replaced by another of its name"},
		"part":    {What: "clock", Why: "no route"},
		"dry":     {What: "report", Why: "dry_run is on in the operator's settings, so it runs nothing on nodes"},
		"ended":   {What: "report", Why: "the action ended cancelled: not now"},
		"stopped": {What: "report", Why: "the action ended cancelled by cli:root@p1"},
		"unknown": {What: "report", Why: `there is no node "unknown"`},
		"stalled": {What: "report", Why: "the pod stays; after fixing this: ekco retry report-stalled"},
	} {
		got := of[node]
		if !slices.Equal(got.Missing, []nodereport.Missing{want}) {
			t.Errorf("of %s is missing %+v, want %+v", node, got.Missing, want)
		}
		if looked := node == "part"; got.Looked != looked || (got.Kubelet != "v1.36.0") != (node == "unknown") {
			t.Errorf("of %s is known %+v", node, got)
		}
	}
	if got := of["rotten"]; len(got.Missing) != 1 || !strings.Contains(got.Missing[0].Why, "read the report of a node") {
		t.Errorf("of what cannot be read is said %+v", got)
	}
	if got := of["away"]; got.Kernel != "6.1.0-old" || got.Action != "report-away" || got.At.IsZero() {
		t.Errorf("of a node that is away is known %+v", got)
	}
	if got := of["good"]; len(got.Missing) != 0 || !got.Looked || len(got.Certificates) != 2 || len(got.Ceph) != 1 || *got.ClockAhead != 0 {
		t.Errorf("of a good one is known %+v", got)
	}
	d.expect(d.types("node-report", "away", "good"), exitFailed, "away  report   node away does not answer", "")
}

func TestNoMoreReportsAreOpenThanMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 90 {
			names = append(names, fmt.Sprintf("n%02d", i))
		}
		o := newReportingOperator(t, names...)
		for _, name := range names[5:30] {
			o.silent[name] = true
		}
		d := reportDesk(t, o)
		ctx, stop := context.WithCancel(t.Context())
		o.status.Journal.LastSeq = 0
		time.AfterFunc(time.Minute, stop)
		d.expect(d.typesUntil(ctx, "node-report", "-o", "json"), exitFailed, "", "")
		if o.most != maxOpenReports || len(o.requests) != 5+maxOpenReports {
			t.Errorf("%d were open, %d asked for", o.most, len(o.requests))
		}
		of := reportsOf(t, d)
		if got := of["n05"].Missing; len(got) != 1 || got[0].Why != "interrupted before the report was complete; the operator continues it: ekco history --action report-n05" {
			t.Errorf("of what is open is said %+v", got)
		}
		if got := of["n89"].Missing; len(got) != 1 || got[0].Why != "interrupted before the report was complete" {
			t.Errorf("of what was not asked for is said %+v", got)
		}
		if of["n05"].Kubelet != "v1.36.0" || !of["n04"].Looked {
			t.Error("what is there already is not shown")
		}
	})
}

func TestAReportThatIsUnderWayIsJoined(t *testing.T) {
	o := newReportingOperator(t, "worker-1")
	o.resumed["worker-1"] = true
	o.write("worker-1", journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Facts: json.RawMessage(`{"kubelet":"v1.36.0"}`)}})
	o.status.Journal.LastSeq = o.seq
	d := reportDesk(t, o)
	d.expect(d.types("node-report", "-o", "json"), exitDone, "", "")
	if got := reportsOf(t, d)["worker-1"]; got.Kubelet != "v1.36.0" || !got.Looked {
		t.Errorf("known is %+v", got)
	}
}

func TestAnOperatorThatIsRestartedIsWaitedFor(t *testing.T) {
	o := newReportingOperator(t, "a", "b")
	o.silent["a"], o.quits = true, 2
	d := reportDesk(t, o)
	d.app.dial = func(context.Context, string, string) (operator, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.quits > 0 && len(o.requests) == 2 {
			o.quits = 0
			o.write("a", journal.TypeStepDone, journal.StepDone{Step: "report a", Outputs: json.RawMessage(plainOutcome)})
			o.write("a", journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
		}
		return o, nil
	}
	d.expect(d.types("node-report", "-o", "json"), exitDone, "", "lost the connection to the operator: it went away; waiting")
	if of := reportsOf(t, d); !of["a"].Looked || !of["b"].Looked || len(o.requests) != 2 {
		t.Errorf("known are %+v after %d requests", of, len(o.requests))
	}
}

func TestProgressGoesToStandardErrorAndOnlyWhenItIsAskedFor(t *testing.T) {
	for _, follow := range []bool{true, false} {
		d := reportDesk(t, newReportingOperator(t, "worker-1"))
		args := []string{"node-report", "-o", "json"}
		if follow {
			args = append(args, "--follow")
		}
		d.expect(d.types(args...), exitDone, "", "")
		if got := strings.Contains(d.errOut.String(), "report-worker-1: ended, done"); got != follow || !follow && d.errOut.Len() > 0 {
			t.Errorf("with --follow %t it says %q", follow, d.errOut)
		}
		reportsOf(t, d)
	}
}

func TestNodeReportNeedsAnOperatorAndANode(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.expect(d.types("node-report"), exitFailed, "", "no operator runs, and node-report needs one")
	d = reportDesk(t, newReportingOperator(t))
	d.expect(d.types("node-report"), exitFailed, "", "EKCO has seen no node yet")
	d.expect(d.types("node-report", "-o", "xml"), exitUsage, "", "want one of table, wide, json, yaml")
}

func TestNodesThatWereNamedAreNotOfferedAgain(t *testing.T) {
	d := reportDesk(t, newReportingOperator(t, "worker-1", "worker-2"))
	d.expect(d.types("__complete", "node-report", "worker-1", ""), exitDone, "worker-2\n", "")
	if strings.Contains(d.out.String(), "worker-1") {
		t.Errorf("offered are %s", d.out)
	}
}

// TestInThePodOfAHostTaskTheOutcomeIsTheLastLineAndTheExitCodeZero: here the host's files are
// not where a pod has them.
func TestInThePodOfAHostTaskTheOutcomeIsTheLastLineAndTheExitCodeZero(t *testing.T) {
	d := newDesk(t, nil)
	d.env["KUBERNETES_SERVICE_HOST"] = ""
	d.expect(d.types(hostTaskCommand, hostTaskReport), exitDone, `ekco-outcome {"result":{"kernel":"`, "")
	if lines := bytes.Count(d.out.Bytes(), []byte("\n")); lines != 1 || d.errOut.Len() != 0 {
		t.Errorf("it says %s%s", d.out, d.errOut)
	}
	if !strings.Contains(d.out.String(), `{"what":"mounted Ceph volumes","why":`) {
		t.Errorf("it says %s", d.out)
	}
}
