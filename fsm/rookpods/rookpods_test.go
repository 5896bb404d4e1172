package rookpods

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal with nodes and what Rook gives its pods.
type world struct{ *fsmtest.Journal }

var (
	config = withUID(journal.RookOperatorConfig, "uid-config")
	mds    = withUID(journal.RookMDS("rook-shared-fs"), journal.MDSUID("uid-fs"))
	agent  = withUID(journal.RookAgent, "uid-agent")
)

func withUID(of journal.Subject, uid string) journal.Subject {
	of.UID = uid
	return of
}

func deployment(name string) journal.Subject {
	return withUID(journal.RookWorkload(journal.KindDeployment, name), "uid-"+name)
}

func newWorld(t *testing.T, p Policy, nodes ...string) *world {
	w := &world{fsmtest.New(t, fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(Machine, p), fsmnode.Capability(), Capability())}
	w.Pass(time.Minute)
	for _, name := range nodes {
		w.join(name, true)
	}
	return w
}

func (w *world) join(name string, ready bool) {
	w.T.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker}
	if !ready {
		facts.Taints = []journal.Taint{{Key: journal.TaintNotReady}}
	}
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(name, "uid-"+name), Payload: journal.NodeObserved{NodeFacts: facts}})
}

func (w *world) see(of journal.Subject, facts journal.RookPodsFacts) { w.Observe(Machine, of, facts) }

// asked decides, and returns the open action about the subject with what it is asked for.
func (w *world) asked(of journal.Subject) (*journal.ActionRecord, journal.RookPodsInput) {
	w.T.Helper()
	w.Decide()
	rec := w.Open(of)
	if rec == nil {
		return nil, journal.RookPodsInput{}
	}
	input, err := journal.InputOf[journal.RookPodsInput](rec.Request)
	if err != nil {
		w.T.Fatal(err)
	}
	return rec, input
}

func (w *world) wants(of journal.Subject) (*journal.ActionRecord, journal.RookPodsInput) {
	w.T.Helper()
	rec, input := w.asked(of)
	if rec == nil {
		w.T.Fatalf("EKCO asks for nothing about %s; refused: %+v", of.Name, w.S.Refusals)
	}
	return rec, input
}

func (w *world) quiet(of ...journal.Subject) {
	w.T.Helper()
	for _, of := range of {
		if rec, _ := w.asked(of); rec != nil {
			w.T.Fatalf("EKCO asks for %+v", rec.Request)
		}
	}
}

// made plays the action to its end, after which the thing is that.
func (w *world) made(rec *journal.ActionRecord, facts journal.RookPodsFacts) {
	w.T.Helper()
	w.Play(rec, journal.StepSetRookPods, facts)
	w.End(rec, journal.OutcomeDone)
}

func (w *world) refused() (rule, reason string) {
	w.T.Helper()
	w.Decide()
	if len(w.S.Refusals) != 1 {
		w.T.Fatalf("refused is %+v, want one", w.S.Refusals)
	}
	return w.S.Refusals[0].Rule, w.S.Refusals[0].Reason
}

func (w *world) state(of journal.Subject) journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[of.UID].State
}

// differs are the facts of a ConfigMap that gives other resources.
func differs(keys ...string) journal.RookPodsFacts {
	return journal.RookPodsFacts{Version: "v1.10.0", Differing: keys}
}

var oneNode = journal.RookPodsFacts{Generation: 1, OneNode: true, Hosts: []string{"a"}}

func TestResourcesAreSetFromThreeNodesOnReadyOrNot(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b")
	w.see(config, differs("K", "L"))
	w.quiet(config)
	if state := w.state(config); state != InStep {
		t.Errorf("with two nodes it is %s", state)
	}
	w.join("c", false)
	rec, input := w.wants(config)
	if !slices.Equal(input.Keys, []string{"K", "L"}) || input.Nodes != 3 || !strings.Contains(rec.Request.Reason, "3 nodes") {
		t.Errorf("asked for is %+v: %s", input, rec.Request.Reason)
	}
	w.made(rec, differs())
	w.quiet(config)
	if state := w.state(config); state != InStep {
		t.Errorf("before anybody has looked again it is %s", state)
	}
	w.see(config, differs())
	w.quiet(config)
}

// TestAUsersEditOfTheResourcesIsPutBackAndThenHeld: also if it is another one each time.
func TestAUsersEditOfTheResourcesIsPutBackAndThenHeld(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b", "c")
	sets := 0
	for _, keys := range [][]string{{"K", "L"}, {"L"}, {"K"}, {"K", "M"}, {"L"}} {
		w.see(config, differs(keys...))
		if rec, _ := w.asked(config); rec != nil {
			w.made(rec, differs())
			sets++
		}
		w.see(config, differs())
		w.Pass(time.Minute)
	}
	if sets < 2 || sets > 3 {
		t.Errorf("it was set %d times", sets)
	}
	w.see(config, differs("L"))
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the resources of Ceph's CSI pods in ConfigMap rook-ceph/rook-ceph-operator-config") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	if state := w.state(config); state != Behind {
		t.Errorf("it is %s", state)
	}
	w.Pass(time.Hour)
	w.wants(config)
}

func TestARookOfUnknownVersionIsAHold(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b", "c")
	facts := differs("K")
	facts.Version, facts.Unversioned = "", "the tag is no version"
	w.see(config, facts)
	w.quiet(config)
	if rule, reason := w.refused(); rule != RuleCSIVersion || !strings.Contains(reason, "the tag is no version, and only Rook 1.9 or later") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.see(config, differs("K"))
	w.wants(config)
}

func TestMDSAreSpreadOnceTwoNodesAreReady(t *testing.T) {
	w := newWorld(t, Policy{}, "a")
	w.join("b", false)
	w.see(mds, oneNode)
	w.quiet(mds)
	w.join("b", true)
	rec, input := w.wants(mds)
	if input.Nodes != 2 || !strings.Contains(rec.Request.Reason, "2 nodes are ready") {
		t.Errorf("asked for is %+v: %s", input, rec.Request.Reason)
	}
	w.join("b", false) // before it has begun
	w.Decide()
	if rec.Cancelling == nil || rec.Cancelling.Reason != "it needs 2 nodes, but there are 1" {
		t.Errorf("it is %+v", rec.Cancelling)
	}
	w.End(rec, journal.OutcomeCancelled)
	w.join("b", true)
	w.Pass(fsm.RetryAfter)
	rec, _ = w.wants(mds)
	w.made(rec, journal.RookPodsFacts{Generation: 2, Spread: true, Hosts: []string{"a", "b"}})
	w.quiet(mds)
	w.see(mds, journal.RookPodsFacts{Generation: 2, Spread: true, Hosts: []string{"a", "b"}})
	w.quiet(mds)
	w.see(mds, journal.RookPodsFacts{Generation: 3, Hosts: []string{"a"}}) // placed by a user
	w.quiet(mds)
}

func TestTheInstallerThatPlacesTheMDSAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b")
	for generation := int64(1); generation < 5; generation += 2 {
		facts := oneNode
		facts.Generation = generation
		w.see(mds, facts)
		rec, _ := w.wants(mds)
		w.made(rec, journal.RookPodsFacts{Generation: generation + 1, Spread: true})
		w.Pass(time.Minute)
	}
	facts := oneNode
	facts.Generation = 5
	w.see(mds, facts)
	w.quiet(mds)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the placement of the MDS of CephFilesystem rook-ceph/rook-shared-fs") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// TestWhatIsPlacedAnewWhileItIsWaitedForIsSpreadAgain: what EKCO made is not newer than what was
// seen of it later, before the action ended.
func TestWhatIsPlacedAnewWhileItIsWaitedForIsSpreadAgain(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b")
	w.see(mds, oneNode)
	rec, _ := w.wants(mds)
	w.Play(rec, journal.StepSetRookPods, journal.RookPodsFacts{Generation: 2, Spread: true})
	w.Pass(time.Minute)
	anew := oneNode
	anew.Generation = 3
	w.see(mds, anew)
	w.End(rec, journal.OutcomeAbandoned)
	if state := w.state(mds); state != Behind {
		t.Errorf("it is %s", state)
	}
	w.Pass(fsm.RetryAfter)
	w.wants(mds)
}

// without is a workload without a priority class.
func without(daemon string) journal.RookPodsFacts {
	return journal.RookPodsFacts{Generation: 1, Daemon: daemon}
}

func with(daemon, class string) journal.RookPodsFacts {
	return journal.RookPodsFacts{Generation: 2, Daemon: daemon, Priority: class}
}

func TestPriorityClassesAreGivenOneDeploymentOfEachDaemonAfterTheOther(t *testing.T) {
	w := newWorld(t, Policy{Class: "node-critical"}, "a")
	osd0, osd1, osd10, mon := deployment("osd-0"), deployment("osd-1"), deployment("osd-10"), deployment("mon-a")
	w.see(osd10, without("osd"))
	w.see(osd1, with("osd", "mine"))
	w.see(osd0, without("osd"))
	w.see(mon, without("mon"))
	w.see(agent, without("agent"))
	rec, input := w.wants(osd0)
	if input.Class != "node-critical" || input.Daemon != "osd" || input.Nodes != 0 {
		t.Errorf("asked for is %+v", input)
	}
	w.wants(mon)
	w.wants(agent)
	w.quiet(osd10, osd1)
	w.Play(rec, journal.StepSetRookPods, with("osd", "node-critical"))
	w.see(osd0, with("osd", "node-critical"))
	w.quiet(osd10) // the former is not rolled out
	w.End(rec, journal.OutcomeDone)
	rec, _ = w.wants(osd10)
	w.quiet(osd0)
	w.made(rec, with("osd", "node-critical"))
	w.quiet(osd0, osd1, osd10)
	w.see(osd10, journal.RookPodsFacts{Generation: 3, Daemon: "osd"})
	w.wants(osd10)
}

func TestAnotherClassCountsAtOnceForWhatHasNotBegun(t *testing.T) {
	w := newWorld(t, Policy{Class: "node-critical"}, "a")
	osd := deployment("osd-0")
	w.see(osd, without("osd"))
	rec, _ := w.wants(osd)
	w.P = w.P.With(Machine, Policy{Class: "mine"})
	w.Decide()
	if rec.Cancelling == nil || rec.Cancelling.Reason != "rook_priority_class is now mine" {
		t.Errorf("it is %+v", rec.Cancelling)
	}
}

func TestEachSettingSwitchesOffItsOwn(t *testing.T) {
	things := map[journal.Subject]journal.RookPodsFacts{config: differs("K"), mds: oneNode, deployment("osd-0"): without("osd")}
	for name, test := range map[string]struct {
		policy any
		wants  []journal.Subject
	}{
		"all on":          {Policy{Class: "c"}, []journal.Subject{config, mds, deployment("osd-0")}},
		"only resources":  {Policy{MDSOff: "off", PriorityOff: "off", Class: "c"}, []journal.Subject{config}},
		"only MDS":        {Policy{CSIOff: "off", PriorityOff: "off", Class: "c"}, []journal.Subject{mds}},
		"only a class":    {Policy{CSIOff: "off", MDSOff: "off", Class: "c"}, []journal.Subject{deployment("osd-0")}},
		"not configured":  {nil, nil},
		"without a class": {Policy{}, []journal.Subject{config, mds}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Policy{}, "a", "b", "c")
			w.P = w.P.With(Machine, test.policy)
			for of, facts := range things {
				w.see(of, facts)
			}
			for of := range things {
				if rec, _ := w.asked(of); (rec != nil) != slices.Contains(test.wants, of) {
					t.Errorf("%s: asked for is %+v", of.Name, rec)
				}
			}
		})
	}
}

func TestWhatIsGoneWantsNothingAndWhatIsBackDoes(t *testing.T) {
	w := newWorld(t, Policy{}, "a", "b", "c")
	w.see(mds, oneNode)
	w.Gone(Machine, mds, "deleted")
	w.quiet(mds)
	if state := w.state(mds); state != Removed || len(Known(w.S, journal.KindCephMDS)) != 0 {
		t.Errorf("it is %s", state)
	}
	w.see(mds, oneNode)
	w.wants(mds)
	if known := Known(w.S, journal.KindCephMDS); len(known) != 1 || known[journal.RookMDS("rook-shared-fs")].UID != mds.UID {
		t.Errorf("known is %+v", known)
	}
}

func TestWhatSomebodyElseHasSetIsNoLongerNeeded(t *testing.T) {
	w := newWorld(t, Policy{Class: "c"}, "a", "b", "c")
	for of, facts := range map[journal.Subject][2]journal.RookPodsFacts{
		config: {differs("K"), differs()}, mds: {oneNode, {Generation: 2, Spread: true}}, agent: {without("agent"), with("agent", "c")},
	} {
		w.see(of, facts[0])
		rec, _ := w.wants(of)
		w.see(of, facts[1])
		w.Decide()
		if rec.Cancelling == nil || rec.Cancelling.Reason != "nothing is left to change" {
			t.Errorf("%s: %+v", of.Name, rec.Cancelling)
		}
	}
}

func TestDetailsSayWhatIsKnownOfAThing(t *testing.T) {
	w := newWorld(t, Policy{}, "a")
	w.see(config, differs("K", "L"))
	w.see(mds, oneNode)
	w.see(agent, without("agent"))
	for of, want := range map[journal.Subject]string{
		config: "other resources than EKCO's: K, L", mds: "MDS run on a, placed as on a single node", agent: "no priority class",
	} {
		if got := strings.Join(w.S.Things[of.UID].Details(fsm.NewWorld(w.S, w.P, w.Now)), "; "); got != want {
			t.Errorf("%s: %q", of.Name, got)
		}
	}
}

func TestEachThingIsPausedByItsOwnName(t *testing.T) {
	w := newWorld(t, Policy{Class: "c"}, "a", "b", "c")
	osd := deployment("osd-0")
	for of, facts := range map[journal.Subject]journal.RookPodsFacts{config: differs("K"), mds: oneNode, osd: without("osd")} {
		w.see(of, facts)
	}
	for _, word := range []string{"rook-ceph-operator-config", "rook-ceph/rook-ceph-mds-rook-shared-fs", "rook-ceph/osd-0"} {
		drafts, err := fsm.Pause(w.S, w.Now, word, "a test", 0, "cli:root@a")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(drafts...)
	}
	w.quiet(config, mds, osd)
	drafts, err := fsm.Resume(w.S, "rook-ceph/rook-ceph-mds-rook-shared-fs", "", "cli:root@a")
	if err != nil {
		t.Fatal(err)
	}
	w.Write(drafts...)
	w.wants(mds)
	w.quiet(config, osd)
}

// TestWhoTakesAPriorityClassAwayAgainAndAgainIsNotFought: a Rook that writes its Deployments anew
// does, and each class that is given restarts a daemon.
func TestWhoTakesAPriorityClassAwayAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, Policy{Class: "node-critical"}, "a")
	osd := deployment("osd-0")
	for generation := int64(1); generation < 5; generation += 2 {
		w.see(osd, journal.RookPodsFacts{Generation: generation, Daemon: "osd"})
		rec, _ := w.wants(osd)
		w.made(rec, journal.RookPodsFacts{Generation: generation + 1, Daemon: "osd", Priority: "node-critical"})
		w.Pass(time.Minute)
	}
	w.see(osd, journal.RookPodsFacts{Generation: 5, Daemon: "osd"})
	w.quiet(osd)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the priority class of Deployment rook-ceph/osd-0") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.Pass(time.Hour)
	w.wants(osd)
}
