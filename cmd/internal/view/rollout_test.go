package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	fsmbalancer "github.com/replicatedhq/ekco/fsm/loadbalancer"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// balancers is a story of load balancers, whose actions have the name of their node.
type balancers struct{ *story }

func newBalancers(t *testing.T) balancers { return balancers{&story{t: t}} }

var balancerWords = words.New(fsmnode.Words, fsmbalancer.Words)

func (b balancers) later(d time.Duration) { b.paused += d }

// begins has an update requested of each node, for that reason.
func (b balancers) begins(reason string, nodes ...string) {
	b.t.Helper()
	for _, node := range nodes {
		b.asks(node, journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: reason})
	}
}

func (b balancers) asks(node string, p journal.ActionRequested) {
	b.t.Helper()
	if p.Input == nil {
		p.Input = journal.LoadBalancerInput{Primaries: []string{"10.0.0.1", "10.0.0.2"}, Image: "haproxy:2"}
	}
	b.tell(journal.LoadBalancer(node), "update-"+node, "operator", 0, journal.TypeActionRequested, p)
}

func (b balancers) ends(outcome journal.Outcome, nodes ...string) {
	b.t.Helper()
	for _, node := range nodes {
		b.tell(journal.LoadBalancer(node), "update-"+node, "operator", 0, journal.TypeActionEnded, journal.ActionEnded{Outcome: outcome})
	}
}

func (b balancers) stalls(node string) {
	b.t.Helper()
	b.tell(journal.LoadBalancer(node), "update-"+node, "operator", 0, journal.TypeActionStalled, journal.ActionStalled{Step: "write", Reason: "disk is full"})
}

func (b balancers) is(node string, state journal.State) {
	b.t.Helper()
	b.tell(journal.LoadBalancer(node), "", "operator", 0, journal.TypeThingTransitioned, journal.ThingTransitioned{Machine: fsmbalancer.Machine, To: state})
}

func (b balancers) refuses(rule, reason string) {
	b.t.Helper()
	b.tell(journal.ClusterSubject, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionUpdateLoadBalancer, Rule: rule, Reason: reason})
}

func (b balancers) lifts(rule string) {
	b.t.Helper()
	b.tell(journal.ClusterSubject, "", "operator", 0, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionUpdateLoadBalancer, Rule: rule})
}

// summary expects these lines of a summary a minute after the last event, without their times.
func (b balancers) summary(want ...string) {
	b.t.Helper()
	last := b.events[len(b.events)-1].Time
	var got []string
	for line := range strings.Lines(asText(b.t, b.events, "summary", Options{Words: balancerWords, Now: last.Add(time.Minute)})) {
		if line = strings.Join(strings.Fields(line)[1:], " "); !strings.HasPrefix(line, "TOOK") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("the summary: %s", diff)
	}
}

const (
	newPrimary = "the primaries are 10.0.0.1, 10.0.0.2, and HAProxy forwards to 10.0.0.1"
	ofTwo      = "update the load balancer on 2 nodes: the primaries are 10.0.0.1, 10.0.0.2 "
)

func TestARolloutIsOneEntryOfASummary(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w1")
	b.ends(journal.OutcomeDone, "w1")
	b.begins("it was not verified yet; the primaries are 10.0.0.1, 10.0.0.2", "p2")
	b.begins("another program deleted or changed ConfigMap kurl/update-internallb: everything is written again", "p1")
	b.refuses(fsm.RuleOneAtATime, "update-p1 is open")
	b.lifts(fsm.RuleOneAtATime)
	b.ends(journal.OutcomeDone, "p1", "p2")
	b.summary("7s update the load balancer on 3 nodes: the primaries are 10.0.0.1, 10.0.0.2 all done",
		"1s ├─ update loadbalancer w1 (update-w1) done",
		"5s ├─ update loadbalancer p2 (update-p2) done",
		"3s └─ update loadbalancer p1 (update-p1) done")
}

// TestARolloutIsNotDoneBeforeAllIs has each way in which a rollout of two nodes may stand.
func TestARolloutIsNotDoneBeforeAllIs(t *testing.T) {
	for name, test := range map[string]struct {
		then func(balancers)
		want string
	}{
		"open":      {func(balancers) {}, "1m1s so far " + ofTwo + "going on, 0 of 2 done"},
		"half done": {func(b balancers) { b.ends(journal.OutcomeDone, "w1") }, "1m2s so far " + ofTwo + "going on, 1 of 2 done"},
		"others wait": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.is("w3", fsmbalancer.Behind)
			b.is("w2", fsmbalancer.Behind)
			b.is("w4", fsmbalancer.Behind)
			b.is("w4", fsmbalancer.InStep)
		}, "1m7s so far " + ofTwo + "going on, 2 of 3 done"},
		"others were left": {func(b balancers) {
			b.is("w3", fsmbalancer.Behind)
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.later(maxRolloutGap)
			b.is("w5", fsmbalancer.InStep)
		}, "4s " + ofTwo + "all done"},
		"stalled": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w2")
			b.stalls("w1")
		}, "1m3s so far " + ofTwo + "stopped at w1, 1 of 2 done: stalled at write: disk is full"},
		"stalled, others wait": {func(b balancers) {
			b.is("w3", fsmbalancer.Behind)
			b.ends(journal.OutcomeDone, "w2")
			b.stalls("w1")
		}, "1m4s so far " + ofTwo + "stopped at w1, 1 of 3 done: stalled at write: disk is full"},
		"stalled, others go on": {func(b balancers) { b.stalls("w1") }, "1m2s so far " + ofTwo + "going on without w1, 0 of 2 done: stalled at write: disk is full"},
		"stalled and cancelled": {func(b balancers) {
			b.ends(journal.OutcomeCancelled, "w1")
			b.stalls("w2")
		}, "1m3s so far " + ofTwo + "stopped at w2, 0 of 2 done: stalled at write: disk is full"},
		"stalled, and another cancelled": {func(b balancers) {
			b.stalls("w1")
			b.ends(journal.OutcomeCancelled, "w2")
		}, "1m3s so far " + ofTwo + "stopped at w1, 0 of 2 done: stalled at write: disk is full"},
		"cancelled": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1")
			b.ends(journal.OutcomeCancelled, "w2")
		}, "3s " + ofTwo + "ended without w2, 1 of 2 done: cancelled"},
		"a node is lost": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.refuses(fsmbalancer.RuleRollout, "node w2 stopped being ready")
		}, "1m4s so far " + ofTwo + "stopped, 2 of 2 done: node w2 stopped being ready"},
		"a node is lost, others wait": {func(b balancers) {
			b.is("w3", fsmbalancer.Behind)
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.refuses(fsmbalancer.RuleRollout, "node w2 stopped being ready")
		}, "1m5s so far " + ofTwo + "stopped, 2 of 3 done: node w2 stopped being ready"},
		"one node is refused, and the list waits": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.tell(journal.LoadBalancer("w1"), "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionUpdateLoadBalancer, Rule: fsm.RulePaused})
			b.tell(journal.Subject{Kind: journal.KindLoadBalancerList, Name: "list"}, "", "operator", 0, journal.TypeThingTransitioned, journal.ThingTransitioned{To: fsmbalancer.Behind})
		}, "3s " + ofTwo + "all done"},
		"others wait for the next rollout": {func(b balancers) {
			b.is("w3", fsmbalancer.Behind)
			b.asks("w4", journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: "the primaries are 10.0.0.9", Input: journal.LoadBalancerInput{Primaries: []string{"10.0.0.9"}}})
		}, "1m3s so far " + ofTwo + "going on, 0 of 2 done"},
		"the node is back": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.refuses(fsmbalancer.RuleRollout, "node w2 stopped being ready")
			b.lifts(fsmbalancer.RuleRollout)
		}, "3s " + ofTwo + "all done"},
		"done at the second time": {func(b balancers) {
			b.ends(journal.OutcomeAbandoned, "w1")
			b.ends(journal.OutcomeDone, "w2")
			b.begins(newPrimary, "w1")
			b.ends(journal.OutcomeDone, "w1")
		}, "5s " + ofTwo + "all done"},
		"refused later": {func(b balancers) {
			b.ends(journal.OutcomeDone, "w1", "w2")
			b.later(maxRolloutGap)
			b.refuses(fsm.RulePaused, "a person paused it")
		}, "3s " + ofTwo + "all done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBalancers(t)
			b.begins(newPrimary, "w1", "w2")
			test.then(b)
			now := b.events[len(b.events)-1].Time.Add(time.Minute)
			got := strings.Split(asText(t, b.events, "summary", Options{Words: balancerWords, Now: now}), "\n")[1]
			if _, got, _ = strings.Cut(strings.Join(strings.Fields(got), " "), " "); got != test.want {
				t.Errorf("got  %q, want %q", got, test.want)
			}
		})
	}
}

// TestOnlyActionsOfOneRolloutAreOneEntry has pairs of actions that are shown as two.
func TestOnlyActionsOfOneRolloutAreOneEntry(t *testing.T) {
	other := journal.LoadBalancerInput{Primaries: []string{"10.0.0.1"}}
	for name, tell := range map[string]func(balancers){
		"daily looks": func(b balancers) {
			b.begins("daily check; the last one was at 2026-11-20T01:00:00Z", "w1", "w2")
		},
		"HAProxy restarted by itself": func(b balancers) {
			b.begins("HAProxy was restarted on the node at 2026-11-20T01:00:00Z", "w1", "w2")
		},
		"other primaries": func(b balancers) {
			b.begins(newPrimary, "w1")
			b.asks("w2", journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: "the primaries are 10.0.0.1", Input: other})
		},
		"a dry run and a real one": func(b balancers) {
			b.asks("w1", journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: newPrimary, DryRun: true})
			b.begins(newPrimary, "w2")
		},
		"another kind": func(b balancers) {
			b.begins(newPrimary, "w1")
			b.asks("w2", journal.ActionRequested{Kind: journal.ActionRestartLoadBalancer, Reason: newPrimary})
		},
		"the second long after the first": func(b balancers) {
			b.begins(newPrimary, "w1")
			b.ends(journal.OutcomeDone, "w1")
			b.later(maxRolloutGap)
			b.begins(newPrimary, "w2")
		},
	} {
		b := newBalancers(t)
		tell(b)
		for _, form := range []string{"summary", "tree"} {
			if got := asText(t, b.events, form, Options{Words: balancerWords, Now: began}); strings.Contains(got, "nodes") || strings.Count(got, "update-w") < 2 {
				t.Errorf("%s: the %s is\n%s", name, form, got)
			}
		}
	}
}

// TestAnAdoptedActionIsPartOfItsRollout, and stands where it was requested.
func TestAnAdoptedActionIsPartOfItsRollout(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w2")
	input := journal.LoadBalancerInput{Primaries: []string{"10.0.0.1", "10.0.0.2"}}
	b.tell(journal.LoadBalancer("w1"), "update-w1", "operator", 0, journal.TypeActionAdopted, journal.ActionAdopted{Record: journal.ActionRecord{
		Kind: journal.ActionUpdateLoadBalancer, RequestedAt: began.Add(-time.Minute),
		Request: journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: newPrimary, Input: input},
	}})
	b.summary("2m1s so far "+ofTwo+"going on, 0 of 2 done", "2m1s so far ├─ update loadbalancer w1 (update-w1) open", "1m1s so far └─ update loadbalancer w2 (update-w2) open")
}

func TestARolloutLastsWhileItsNextActionIsRefused(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w1")
	b.ends(journal.OutcomeDone, "w1")
	b.refuses(fsmbalancer.RuleRollout, "node w1 stopped being ready")
	b.later(24 * time.Hour)
	b.lifts(fsmbalancer.RuleRollout)
	b.begins(newPrimary, "w2")
	if got := asText(t, b.events, "summary", Options{Words: balancerWords, Now: began}); !strings.Contains(got, "on 2 nodes") || !strings.Contains(got, "blocked by LoadBalancerRollout") {
		t.Errorf("it is\n%s", got)
	}
}

func TestARolloutOfADryRunSaysThatNothingWasChanged(t *testing.T) {
	b := newBalancers(t)
	for _, node := range []string{"w1", "w2"} {
		b.asks(node, journal.ActionRequested{Kind: journal.ActionUpdateLoadBalancer, Reason: newPrimary, DryRun: true})
		b.ends(journal.OutcomeDryRun, node)
	}
	b.summary("3s dry run: "+ofTwo+"nothing was changed", "1s ├─ update loadbalancer w1 (update-w1) dry-run", "1s └─ update loadbalancer w2 (update-w2) dry-run")
}

// TestATreeHasARolloutAsOneBranch where the first action began, also when events stream in.
func TestATreeHasARolloutAsOneBranch(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w1", "w2")
	b.events[0].Cause = 7
	b.tell(journal.NodeSubject("w9", "u9"), "", "observer/node", 0, journal.TypeNodeGone, journal.NodeGone{})
	b.ends(journal.OutcomeDone, "w1")
	b.stalls("w2")
	b.begins(newPrimary, "w3")
	b.ends(journal.OutcomeDone, "w3")
	options := Options{Words: balancerWords, Now: began.Add(time.Minute)}
	want := `2026-11-21T01:00:00Z  1m so far  update the load balancer on 3 nodes: the primaries are 10.0.0.1, 10.0.0.2  stopped at w2, 2 of 3 done: stalled at write: disk is full
   because of #7
   ├─ update loadbalancer w1 (update-w1)  3s          done
   ├─ update loadbalancer w2 (update-w2)  59s so far  stalled at write: disk is full
   └─ update loadbalancer w3 (update-w3)  1s          done
2026-11-21T01:00:02Z  node w9 is gone
`
	if diff := cmp.Diff(want, asText(t, b.events, "tree", options)); diff != "" {
		t.Error(diff)
	}
	options.Live = true
	if live := asText(t, b.events, "tree", options); strings.Contains(live, "nodes") || strings.Count(live, "update-load-balancer w") != 3 {
		t.Errorf("a live tree is\n%s", live)
	}
}

// TestATreeShowsARolloutOnceItIsOver, and forgets it.
func TestATreeShowsARolloutOnceItIsOver(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w1", "w2")
	b.ends(journal.OutcomeDone, "w1", "w2")
	gone := func() {
		b.tell(journal.ClusterSubject, "", "cli:a@h", 0, journal.TypePauseCleared, journal.PauseCleared{})
	}
	gone()
	b.later(maxRolloutGap)
	gone()
	b.paused = -time.Minute // the clock was set back
	b.begins(newPrimary, "w3")
	b.ends(journal.OutcomeDone, "w3")
	var out bytes.Buffer
	tree := newTree(&out, Options{Words: balancerWords, Now: began.Add(time.Hour)})
	for i, e := range b.events {
		if err := tree.Event(e); err != nil {
			t.Fatal(err)
		}
		if shown := strings.Contains(out.String(), "on 2 nodes"); shown != (i >= 5) {
			t.Errorf("after event %d the tree is\n%s", i+1, out.String())
		}
	}
	if err := tree.Flush(); err != nil || !strings.Contains(out.String(), "update-load-balancer w3: done after 1s  [update-w3]") || len(tree.digest.lines) > 0 {
		t.Errorf("%v, %d lines are remembered, the tree is\n%s", err, len(tree.digest.lines), out.String())
	}
}

// TestARolloutWhoseOtherActionsAreHeldIsStopped at the one that is stalled. Without that one, it is going on.
func TestARolloutWhoseOtherActionsAreHeldIsStopped(t *testing.T) {
	b := newBalancers(t)
	hold := func(p any, kind journal.Type) {
		b.tell(journal.LoadBalancer("w2"), "update-w2", "operator", 0, kind, p)
	}
	b.begins(newPrimary, "w1", "w2")
	hold(journal.ActionHeld{Preflight: "P", Reason: "w1 is worse"}, journal.TypeActionHeld)
	b.summary("1m2s so far "+ofTwo+"going on, 0 of 2 done", "1m2s so far ├─ update loadbalancer w1 (update-w1) open", "1m1s so far └─ update loadbalancer w2 (update-w2) waits: w1 is worse (P)")
	b.tell(journal.LoadBalancer("w1"), "update-w1", "operator", 0, journal.TypeActionHeld, journal.ActionHeld{Preflight: "Q", Reason: "the node is not ready"})
	b.summary("1m3s so far "+ofTwo+"waits, 0 of 2 done: w1 is worse (P)", "1m3s so far ├─ update loadbalancer w1 (update-w1) waits: the node is not ready (Q)", "1m2s so far └─ update loadbalancer w2 (update-w2) waits: w1 is worse (P)")
	b.stalls("w1")
	const stalled = "stalled at write: disk is full"
	b.summary("1m4s so far "+ofTwo+"stopped at w1, 0 of 2 done: "+stalled, "1m4s so far ├─ update loadbalancer w1 (update-w1) "+stalled, "1m3s so far └─ update loadbalancer w2 (update-w2) waits: w1 is worse (P)")
	hold(journal.ActionReleased{Preflight: "P"}, journal.TypeActionReleased)
	b.summary("1m5s so far "+ofTwo+"going on without w1, 0 of 2 done: "+stalled, "1m5s so far ├─ update loadbalancer w1 (update-w1) "+stalled, "1m4s so far └─ update loadbalancer w2 (update-w2) open")
}

// TestARolloutWhoseActionsAreAllHeldWaits, although another node has not begun.
func TestARolloutWhoseActionsAreAllHeldWaits(t *testing.T) {
	b := newBalancers(t)
	b.begins(newPrimary, "w1", "w2")
	b.ends(journal.OutcomeDone, "w1")
	b.tell(journal.LoadBalancer("w2"), "update-w2", "operator", 0, journal.TypeActionHeld, journal.ActionHeld{Preflight: "P", Reason: "w1 is lost"})
	b.is("w3", fsmbalancer.Behind)
	b.summary("1m4s so far "+ofTwo+"waits, 1 of 3 done: w1 is lost (P)", "2s ├─ update loadbalancer w1 (update-w1) done", "1m3s so far └─ update loadbalancer w2 (update-w2) waits: w1 is lost (P)")
}
