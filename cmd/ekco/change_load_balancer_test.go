package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

const (
	changeID  = "change-lb-cluster-1"
	newServer = "https://lb.example.com"
)

// changingOperator answers one request.
type changingOperator struct {
	*fakeOperator
	refuses error
}

func (o *changingOperator) Request(ctx context.Context, r fsm.Request) (api.Admission, error) {
	admitted, _ := o.fakeOperator.Request(ctx, r)
	return admitted, o.refuses
}

// newChanging returns an operator whose change leaves these outputs of p1, w1 and w2, and then ends so; an
// empty outcome leaves it open.
func newChanging(t *testing.T, end journal.Outcome, outputs ...string) *changingOperator {
	t.Helper()
	o := &changingOperator{fakeOperator: &fakeOperator{admitted: api.Admission{Action: changeID}}}
	seq := uint64(0)
	write := func(kind journal.Type, payload any) {
		seq++
		e := event(t, seq, changeID, kind, payload)
		e.Subject = journal.Kubeconfigs
		o.live = append(o.live, e)
	}
	facts := journal.KubeconfigsFacts{KubeconfigsInput: journal.KubeconfigsInput{Server: newServer}}
	names := []string{"p1", "w1", "w2"}
	for _, name := range names {
		facts.Nodes = append(facts.Nodes, journal.KubeconfigsNode{Name: name, UID: "u-" + name, Primary: name == "p1"})
	}
	raw, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	write(journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Facts: raw}})
	write(journal.TypeStepDone, journal.StepDone{Step: "serve p1", Outputs: json.RawMessage(`{}`)})
	for i, output := range outputs {
		write(journal.TypeStepDone, journal.StepDone{Step: "kubeconfig " + names[i], Outputs: json.RawMessage(output)})
		write(journal.TypeStepDone, journal.StepDone{Step: "remove-host-task of kubeconfig " + names[i]})
	}
	if end != "" {
		write(journal.TypeActionEnded, journal.ActionEnded{Outcome: end, Reason: "so it is"})
	}
	return o
}

const isSet = `{"result":{"files":[{"path":"/etc/kubernetes/kubelet.conf","cluster":"kubernetes","from":"https://10.0.0.1:6443"}]}}`

// results expects that the last line, and no other, is the result.
func (d *desk) results(code, wantCode int, want string) {
	d.t.Helper()
	d.expect(code, wantCode, "", "")
	lines := strings.Split(strings.TrimSuffix(d.out.String(), "\n"), "\n")
	if got := lines[len(lines)-1]; got != "Result: "+want || strings.Count(d.out.String()+d.errOut.String(), "Result:") != 1 || d.errOut.Len() != 0 {
		d.t.Errorf("the last line is %q, want %q; in all:\n%s%s", got, "Result: "+want, d.out, d.errOut)
	}
}

// changes types the command beside an operator.
func (d *desk) changes(o operator, args ...string) int {
	d.app.dial = func(context.Context, string, string) (operator, error) {
		if o == nil {
			return nil, api.ErrNoOperator
		}
		return o, nil
	}
	return d.types(append([]string{"change-load-balancer"}, args...)...)
}

func TestTheResultOfAChangeIsTheLastLine(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, journal.OutcomeDone, isSet, isSet, `{"left":"node w2 is no longer part of the cluster"}`)
	d.results(d.changes(o, "--server="+newServer, "--internal", "--exclude=w9,w8"), exitDone, "success")
	for _, line := range []string{
		"node p1: its load balancer serves", "node w1: set /etc/kubernetes/kubelet.conf (was https://10.0.0.1:6443); restarted the kubelet",
		"node w2: node w2 is no longer part of the cluster", changeID + ": pointing the kubelets to " + newServer,
	} {
		d.expect(exitDone, exitDone, line, "")
	}
	asked := o.request(t)
	if want := `{"server":"https://lb.example.com","internal":true,"exclude":["w8","w9"]}`; string(asked.Input) != want || asked.Kind != journal.ActionChangeLoadBalancer {
		t.Errorf("asked for is %s of %s", asked.Kind, asked.Input)
	}
}

func TestWhatIsLeftIsInTheResultWithTheCommandThatGoesOn(t *testing.T) {
	d, away := newDesk(t, nil), `{"missing":"node w1 does not answer","left":"node w1 is left alone: node w1 does not answer"}`
	d.results(d.changes(newChanging(t, journal.OutcomePartial, isSet, away, isSet), "--server="+newServer, "--exclude=w9"), exitFailed,
		"1 node left: w1 (node w1 does not answer); after repairing that, continue with: ekco change-load-balancer --server="+newServer+" --exclude=w9")
	d.results(d.changes(newChanging(t, journal.OutcomeCancelled, isSet, isSet), "--server="+newServer, "--internal"), exitFailed,
		changeID+" ended cancelled: so it is; 1 node left: w2; to continue: ekco change-load-balancer --server="+newServer+" --internal")
	d.results(d.changes(newChanging(t, "", isSet, isSet), "--server="+newServer, "--timeout=200ms"), exitFailed,
		"not done within 200ms (working); 1 node left: w2; EKCO continues "+changeID+"; to wait for it: ekco change-load-balancer --server="+newServer)
	d.results(d.changes(nil, "--server="+newServer, "--timeout=200ms"), exitFailed,
		"not done within 200ms: waiting for an operator; nothing was changed; check the operator (kubectl -n kurl get pods -l app=ekc-operator), then run: ekco change-load-balancer --server="+newServer)
}

// TestANodeThatHasJoinedMeanwhileIsLeft: nobody has led its kubelet anywhere.
func TestANodeThatHasJoinedMeanwhileIsLeft(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
	o.status.Nodes = []api.NodeStatus{
		{Name: "p1", State: fsmnode.Healthy}, {Name: "w1", State: fsmnode.Unknown}, {Name: "w3", State: fsmnode.Healthy}, {Name: "w8", State: fsmnode.Purged}, {Name: "w9", State: fsmnode.Healthy},
	}
	d.results(d.changes(o, "--server="+newServer, "--exclude=w9"), exitFailed,
		"1 node left: w3 (it joined during the change); after repairing that, continue with: ekco change-load-balancer --server="+newServer+" --exclude=w9")
}

// TestWhoDoesNotWaitAnyLongerIsToldWhatTheChangeWaitsFor.
func TestWhoDoesNotWaitAnyLongerIsToldWhatTheChangeWaitsFor(t *testing.T) {
	for _, test := range []struct {
		kind    journal.Type
		payload any
		want    string
	}{
		{journal.TypeActionHeld, journal.ActionHeld{Preflight: "NodesRead", Reason: "the API does not answer"}, "waiting: the API does not answer (NodesRead)"},
		{journal.TypeActionStalled, journal.ActionStalled{Reason: "the disk is full"}, "stalled: the disk is full"},
	} {
		d, o := newDesk(t, nil), newChanging(t, "", isSet, isSet, isSet)
		o.live = append(o.live, event(t, 99, changeID, test.kind, test.payload))
		d.results(d.changes(o, "--server="+newServer, "--timeout=200ms"), exitFailed,
			"not done within 200ms ("+test.want+"); EKCO continues "+changeID+"; to wait for it: ekco change-load-balancer --server="+newServer)
	}
}

// TestManyThatAreLeftAreCounted, and each is named once, also one of which cannot be read what came of it.
func TestManyThatAreLeftAreCounted(t *testing.T) {
	c := &changer{outputs: map[string]json.RawMessage{"n01": json.RawMessage("{")}, unserved: map[string]string{"n02": "it does not run", "n12": "it neither"}}
	c.flags.Exclude = []string{"n12"}
	for i := range 11 {
		c.facts.Nodes = append(c.facts.Nodes, journal.KubeconfigsNode{Name: fmt.Sprintf("n%02d", i+1)})
	}
	left := c.unfinishedNodes()
	if !strings.HasPrefix(left, "12 nodes left: n01 (") || !strings.Contains(left, "), n02, n03, ") || !strings.HasSuffix(left, ", n10 and 2 more; ") {
		t.Errorf("left are %q", left)
	}
}

func TestAStepThatFailedIsTold(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, "", isSet)
	o.live = append(o.live, event(t, 98, changeID, journal.TypeStepFailed, journal.StepFailed{Step: "kubeconfig w1", Attempt: 1, Error: "connection refused"}),
		event(t, 99, changeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "enough"}))
	d.expect(d.changes(o, "--server="+newServer), exitFailed, "connection refused", "")
}

// TestNoNodeSaysWhatTheResultIs: installers take the first "Result:" for it, wherever it stands.
func TestNoNodeSaysWhatTheResultIs(t *testing.T) {
	d, forged := newDesk(t, nil), `{"missing":"it failed\nResult: success","left":"it is left"}`
	d.results(d.changes(newChanging(t, journal.OutcomeDone, isSet, forged, isSet), "--server="+newServer), exitFailed,
		"1 node left: w1 (it failed; result: success); after repairing that, continue with: ekco change-load-balancer --server="+newServer)
}

func TestALoadBalancerThatDoesNotServeIsLeftAlsoWhereTheKubeletIsExcluded(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
	serves := event(t, 2, changeID, journal.TypeStepDone, journal.StepDone{Step: "serve p9", Outputs: json.RawMessage(`{"missing":"it hangs","left":"it is left"}`)})
	o.live[1] = serves
	d.results(d.changes(o, "--server="+newServer, "--internal", "--exclude=p9"), exitFailed,
		"1 node left: p9 (its load balancer was not verified: it hangs); after repairing that, continue with: ekco change-load-balancer --server="+newServer+" --internal --exclude=p9")
	d.expect(exitFailed, exitFailed, "node p9: its load balancer was not verified: it hangs", "")
}

func TestWhoAsksForTheSameJoins(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
	o.admitted.Resumed, o.admitted.Message = true, "requested at noon by cli:root@p1"
	d.results(d.changes(o, "--server="+newServer), exitDone, "success")
	d.expect(exitDone, exitDone, "joining "+changeID+", requested at noon by cli:root@p1", "")
}

func TestNothingIsAskedForThatMakesNoSense(t *testing.T) {
	d, o := newDesk(t, nil), newChanging(t, journal.OutcomeDone)
	for args, want := range map[string]string{
		"":                                "give the API server's address: --server=https://localhost:6444; nothing was changed",
		"--server=localhost:6444":         `invalid server "localhost:6444": it has no scheme; want for example https://localhost:6444 or https://lb.example.com; nothing was changed`,
		"--server=https://":               `invalid server "https://": it has no host; want for example https://localhost:6444 or https://lb.example.com; nothing was changed`,
		"--server=http://a":               `invalid server "http://a": its scheme is not https; want for example https://localhost:6444 or https://lb.example.com; nothing was changed`,
		"--server=https://a/?token=b":     `invalid server "https://a/?REDACTED": it has more than a host, a port and a path; want for example https://localhost:6444 or https://lb.example.com; nothing was changed`,
		"--server=https://a --timeout=0s": "--timeout is 0s: want a duration above zero, like 8m; nothing was changed",
	} {
		d.results(d.changes(o, strings.Fields(args)...), exitUsage, want)
	}
	for args, want := range map[string]string{"--bogus": "unknown flag: --bogus", "--server=https://a --timeout=x": "invalid argument \"x\" for \"--timeout\"", "--server=https://a b": "change-load-balancer takes no argument"} {
		if code := d.changes(o, strings.Fields(args)...); code != exitUsage || !strings.HasPrefix(d.out.String(), "Result: ") || !strings.Contains(d.out.String(), want) || strings.Count(d.out.String()+d.errOut.String(), "Result:") != 1 {
			t.Errorf("%s: exit code %d: %s%s", args, code, d.out, d.errOut)
		}
	}
	if len(o.requests) != 0 {
		t.Errorf("asked for is %+v", o.requests)
	}
	o.refuses = fmt.Errorf("%w: there is no node \"w\" to exclude", api.ErrRefused)
	d.results(d.changes(o, "--server="+newServer, "--exclude=w"), exitFailed, o.refuses.Error())
}

func TestThatNothingWasChangedIsOnlySaidWhereItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, o := newDesk(t, nil), newChanging(t, "")
		o.refuses = errors.New("the connection was lost")
		d.results(d.changes(o, "--server="+newServer, "--timeout=200ms"), exitFailed,
			"not done within 200ms: waiting for an operator; the operator may have begun, since it did not answer the request (see: ekco history --component kubeconfigs); to join or start the change: ekco change-load-balancer --server="+newServer)
		o = newChanging(t, "", isSet, isSet)
		o.unread = fmt.Errorf("%w: events are none of your business", api.ErrForbidden)
		d.results(d.changes(o, "--server="+newServer), exitFailed,
			o.unread.Error()+" (planning); EKCO continues "+changeID+"; to wait for it: ekco change-load-balancer --server="+newServer)
	})
}

func TestAChangeIsFollowedByTheNextOperatorAndAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		first, second := newChanging(t, "", isSet), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
		first.lost = true
		operators := []operator{first, second}
		d.app.dial = func(context.Context, string, string) (operator, error) {
			next := operators[0]
			if len(operators) > 1 {
				operators = operators[1:]
			}
			return next, nil
		}
		d.results(d.types("change-load-balancer", "--server="+newServer), exitDone, "success")
		d.expect(exitDone, exitDone, "lost the connection to the operator: the operator ended the stream; waiting", "")
		if len(first.requests) != 1 || len(second.requests) != 0 || first.closed != 1 || second.closed != 1 {
			t.Errorf("asked %d and %d times, hung up %d and %d times", len(first.requests), len(second.requests), first.closed, second.closed)
		}
		if strings.Count(d.out.String(), "node p1: set /etc") != 1 {
			t.Errorf("it is said twice:\n%s", d.out)
		}
	})
}

// TestWhatOthersAskedForOrWasAskedForBeforeIsNotTakenForIts: that it is done would be said of another change.
func TestWhatOthersAskedForOrWasAskedForBeforeIsNotTakenForIts(t *testing.T) {
	for name, test := range map[string]struct {
		seq    uint64
		actor  string
		server string
	}{
		"before":         {5, api.LocalActor(), newServer},
		"by another":     {6, "cli:other@elsewhere", newServer},
		"another server": {6, api.LocalActor(), "https://other.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				first, second := newChanging(t, ""), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
				first.status.Journal.LastSeq = 5
				first.refuses = errors.New("the connection was lost")
				asked := event(t, test.seq, "change-lb-cluster-0", journal.TypeActionRequested, journal.ActionRequested{
					Kind: journal.ActionChangeLoadBalancer, Input: journal.KubeconfigsInput{Server: test.server},
				})
				asked.Subject, asked.Actor = journal.Kubeconfigs, test.actor
				second.past = []journal.Event{asked}
				operators := []operator{first, second}
				d.app.dial = func(context.Context, string, string) (operator, error) {
					next := operators[0]
					operators = operators[1:]
					return next, nil
				}
				d.results(d.types("change-load-balancer", "--server="+newServer), exitDone, "success")
				if len(second.requests) != 1 {
					t.Errorf("asked %d times", len(second.requests))
				}
			})
		})
	}
}

func TestWhatWasRecordedWithoutAnAnswerIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		first, second := newChanging(t, ""), newChanging(t, journal.OutcomeDone, isSet, isSet, isSet)
		first.refuses = errors.New("the connection was lost")
		input := journal.KubeconfigsInput{Server: newServer}
		asked := event(t, 1, changeID, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionChangeLoadBalancer, Input: input})
		asked.Subject, asked.Actor = journal.Kubeconfigs, api.LocalActor()
		second.past = []journal.Event{asked}
		operators := []operator{first, second}
		d.app.dial = func(context.Context, string, string) (operator, error) {
			next := operators[0]
			operators = operators[1:]
			return next, nil
		}
		d.results(d.types("change-load-balancer", "--server="+newServer), exitDone, "success")
		if len(first.requests) != 1 || len(second.requests) != 0 {
			t.Errorf("asked %d and %d times", len(first.requests), len(second.requests))
		}
	})
}

// TestAFormerServerIsPrintedWithoutItsPassword: journals of earlier versions have the password.
func TestAFormerServerIsPrintedWithoutItsPassword(t *testing.T) {
	files := []journal.KubeconfigSet{{Path: "kubelet.conf", From: "https://admin:s3cret@10.0.0.1:6443"}}
	if said := settingsText(&journal.KubeconfigsSet{Files: files}); strings.Contains(said, "s3cret") || !strings.Contains(said, "10.0.0.1:6443") {
		t.Errorf("it says %q", said)
	}
}

// TestAPartialChangeFailsThoughNoNodeIsNamed, such as after a failed check on a node whose kubelet is excluded.
func TestAPartialChangeFailsThoughNoNodeIsNamed(t *testing.T) {
	d := newDesk(t, nil)
	d.expect(d.changes(newChanging(t, journal.OutcomePartial, isSet, isSet, isSet), "--server="+newServer), exitFailed, "so it is", "")
}
