package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// estate is what an action is about: one object of Rook, three ready nodes, and a Ceph with
// OSDs on three hosts.
type estate struct {
	objects *kubesim.Objects
	kube    *kubesim.Cluster
	ceph    *cephsim.Cluster
	subject journal.Subject
	looks   atomic.Int64
}

func installed(of journal.Subject, object string) *estate {
	e := &estate{objects: kubesim.NewObjects(), kube: kubesim.New(), ceph: cephsim.New(), subject: of}
	e.objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	e.subject.UID = e.objects.Put(rook.ResourceRef(of), object)
	e.objects.Put(rook.NamespaceRef(), `{}`)
	for i, name := range []string{"a", "b", "c"} {
		e.kube.AddNode(name, journal.RoleWorker)
		e.ceph.AddHost(name, i, 10+i)
	}
	return e
}

// onItsTerms has the actions of a world take the domains that they name.
func onItsTerms(w *actionstest.World) {
	w.T.Helper()
	terms, err := fsm.TermsByKind(fsmrook.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	for kind, of := range terms {
		of.Rules = actionstest.Rules()
		terms[kind] = of
	}
	w.Terms = terms
}

// removed reports whether Rook's namespace is gone.
func (e *estate) removed(context.Context) bool { return e.objects.Object(rook.NamespaceRef()) == nil }

func (e *estate) definitions() []actions.Definition {
	return New(Dependencies{Rook: rook.NewCustom(e.objects), Ceph: e.ceph, Nodes: e.kube, Removed: e.removed, IsLowSpaceCheck: fsmrook.IsLowSpaceCheck, Changed: func() { e.looks.Add(1) }})
}

// node is one of the nodes, as it is to be listed.
func (e *estate) node(name string) journal.RookNode {
	node, err := e.kube.Node(context.Background(), name)
	if err != nil {
		panic(err)
	}
	return journal.RookNode{Name: name, UID: node.UID, Hostname: name}
}

// edit has somebody else change what is asked for.
func (e *estate) edit(spec string) {
	e.objects.Edit(rook.ResourceRef(e.subject), func(object map[string]any) {
		var content map[string]any
		if err := json.Unmarshal([]byte(spec), &content); err != nil {
			panic(err)
		}
		object["spec"] = content
	})
}

// outcome is what has become of the object: its generation tells how often it changed.
func (e *estate) outcome() string {
	object := e.objects.Object(rook.ResourceRef(e.subject))
	if object == nil {
		return "gone"
	}
	spec, err := json.Marshal(object["spec"])
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s, generation %v", spec, object["metadata"].(map[string]any)["generation"])
}

var blockPool = journal.RookPools(journal.KindCephBlockPool, "replicapool")

const (
	size1    = `{"spec":{"replicated":{"size":1},"x":1}}`
	sizeAt   = "/spec/replicated/size"
	allNodes = `{"spec":{"storage":{"useAllNodes":true},"mon":{"count":1},"mgr":{"count":1}}}`
	listsC   = `{"spec":{"storage":{"useAllNodes":false,"nodes":[{"name":"c"}]},"mon":{"count":1},"mgr":{"count":1}}}`
)

func number(place string, from, to int) journal.RookChange {
	return journal.RookChange{Numbers: map[string]journal.RookNumber{place: {From: from, To: to}}, Hosts: to}
}

// scene begins with an object of that content and a request for the change; then may change
// the world as the patch arrives.
func scene(kind journal.ActionKind, of journal.Subject, content string, change func(*estate) journal.RookChange, meanwhile func(*estate, int)) actionstest.Scene {
	return actionstest.Scene{Points: 8, Set: func(w *actionstest.World) actionstest.Stage {
		onItsTerms(w)
		e, patches := installed(of, content), 0
		e.objects.BeforeEffect = func(string) {
			if patches++; meanwhile != nil {
				meanwhile(e, patches)
			}
		}
		w.Request(e.subject, journal.ActionRequested{Kind: kind, Input: change(e)})
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(e.definitions()...) },
			Outcome: e.outcome,
		}
	}}
}

func scenes() actionstest.Scenes {
	nodes := func(e *estate) journal.RookChange {
		return journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b")}}
	}
	copies := func(*estate) journal.RookChange { return number(sizeAt, 1, 2) }
	daemons := func(*estate) journal.RookChange {
		return journal.RookChange{Numbers: map[string]journal.RookNumber{journal.RookMons: {From: 1, To: 3}, journal.RookMgrs: {From: 1, To: 2}}, Hosts: 3}
	}
	first := func(spec string) func(*estate, int) {
		return func(e *estate, patches int) {
			if patches == 1 {
				e.edit(spec)
			}
		}
	}
	return actionstest.Scenes{
		"nodes instead of all": scene(journal.ActionAddStorageNodes, journal.RookCluster, allNodes, nodes, nil),
		"nodes to a list":      scene(journal.ActionAddStorageNodes, journal.RookCluster, listsC, nodes, nil),
		"nodes to a list that changes": scene(journal.ActionAddStorageNodes, journal.RookCluster, listsC, nodes,
			first(`{"storage":{"useAllNodes":false,"nodes":[{"name":"d"},{"name":"a"}]}}`)),
		"copies":                scene(journal.ActionRaiseCopies, blockPool, size1, copies, nil),
		"copies as they should": scene(journal.ActionRaiseCopies, blockPool, `{"spec":{"replicated":{"size":2}}}`, copies, nil),
		"copies that somebody else sets higher": scene(journal.ActionRaiseCopies, blockPool, size1, copies,
			first(`{"replicated":{"size":3}}`)),
		"daemons": scene(journal.ActionAddCephDaemons, journal.RookCluster, listsC, daemons, nil),
		"replaced as it was to be changed": scene(journal.ActionRaiseCopies, blockPool, size1, copies, func(e *estate, patches int) {
			if patches == 1 {
				e.objects.Remove(rook.ResourceRef(e.subject))
				e.objects.Put(rook.ResourceRef(e.subject), size1)
			}
		}),
	}
}

func TestTheCrashMatrix(t *testing.T) { scenes().Run(t) }

// TestTwoEKCOsChangeOnce: each has a journal of its own, and both have read the object before
// either changes it.
func TestTwoEKCOsChangeOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := installed(journal.RookCluster, listsC)
		e.objects.SetLatency(1e9)
		other := actionstest.NewWorld(w.T)
		onItsTerms(w)
		onItsTerms(other)
		for _, each := range []*actionstest.World{w, other} {
			each.Request(e.subject, journal.ActionRequested{
				Kind: journal.ActionAddStorageNodes, Input: journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b")}},
			})
		}
		second := other.Start(other.Config(e.definitions()))
		w.RunToEnd(w.Config(e.definitions()))
		second.End()
		want := `{"mgr":{"count":1},"mon":{"count":1},"storage":{"nodes":[{"name":"c"},{"name":"a"},{"name":"b"}],"useAllNodes":false}}, generation 2`
		if got := e.outcome(); got != want || w.LastLine() != "ended done" || other.LastLine() != "ended done" {
			t.Errorf("it is %s: %q, %q", got, w.Story(), other.Story())
		}
		if e.looks.Load() == 0 {
			t.Error("nobody looks at the change")
		}
	})
}

// inNoTime asks a preflight, which may wait for an answer that does not come.
func inNoTime(t *testing.T, preflight actions.Preflight, record journal.ActionRecord) (verdict actions.Verdict) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { verdict = preflight.Check(t.Context(), record) })
	return verdict
}

// checks expects that of a preflight.
func (e *estate) checks(t *testing.T, name string, change journal.RookChange, kind actions.VerdictKind, key string) {
	t.Helper()
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = change
	verdict := inNoTime(t, e.definitions()[0].Preflights[name], record)
	if verdict.Kind != kind || verdict.Key != key {
		t.Errorf("%s says %+v, want %s about %q", name, verdict, kind, key)
	}
}

func TestANodeThatIsNotWhatItWasIsNotListed(t *testing.T) {
	e := installed(journal.RookCluster, listsC)
	change := journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b")}}
	e.checks(t, StorageNodesReady, change, actions.VerdictPass, "")
	e.kube.LoseNode("b")
	e.checks(t, StorageNodesReady, change, actions.VerdictAbandon, "node unready")
	occupied := journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b")}}
	occupied.Nodes[1].Occupied = true
	e.checks(t, StorageNodesReady, occupied, actions.VerdictPass, "")
	e.kube.SetHostname("b", "b.example.com")
	e.checks(t, StorageNodesReady, occupied, actions.VerdictAbandon, "node renamed")
	e.kube.RemoveNode("b")
	e.checks(t, StorageNodesReady, change, actions.VerdictAbandon, "node gone")
	e.kube.AddNode("b", journal.RoleWorker)
	e.checks(t, StorageNodesReady, change, actions.VerdictAbandon, "node replaced")
	e.kube.Forbid(kubesim.ListNodes)
	e.checks(t, StorageNodesReady, change, actions.VerdictHold, "nodes unread")
}

func TestANodeWithoutTheLabelIsNotListed(t *testing.T) {
	e := installed(journal.RookCluster, listsC)
	change := journal.RookChange{Nodes: []journal.RookNode{e.node("a")}, Label: "store=yes"}
	e.checks(t, StorageNodesReady, change, actions.VerdictAbandon, "node unlabelled")
	e.kube.SetLabel("a", "store", "no")
	e.checks(t, StorageNodesReady, change, actions.VerdictAbandon, "node unlabelled")
	e.kube.SetLabel("a", "store", "yes")
	e.checks(t, StorageNodesReady, change, actions.VerdictPass, "")
	change.Nodes = append(change.Nodes, e.node("b"))
	change.Nodes[1].Occupied = true
	e.checks(t, StorageNodesReady, change, actions.VerdictPass, "")
}

// TestAThousandNodesAreReadAtOnce: not one after the other.
func TestAThousandNodesAreReadAtOnce(t *testing.T) {
	e, change := installed(journal.RookCluster, listsC), journal.RookChange{}
	for i := range 1000 {
		name := fmt.Sprintf("node-%d", i)
		e.kube.AddNode(name, journal.RoleWorker)
		change.Nodes = append(change.Nodes, e.node(name))
	}
	asked := &counting{Nodes: e.kube}
	if verdict := (nodesReady{asked}).check(t.Context(), journal.ActionRecord{}, change); verdict.Kind != actions.VerdictPass || asked.calls != 1 {
		t.Errorf("after %d calls: %+v", asked.calls, verdict)
	}
}

// counting counts how often the nodes are read.
type counting struct {
	Nodes
	calls int
}

func (c *counting) ListNodes(ctx context.Context) ([]kube.Node, error) {
	c.calls++
	return c.Nodes.ListNodes(ctx)
}

func TestAListThatWouldLeaveOutAHostWithOSDsIsNotPutInThePlaceOfAll(t *testing.T) {
	e := installed(journal.RookCluster, allNodes)
	change := journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b")}, Whole: true}
	e.checks(t, StorageHostsListed, change, actions.VerdictAbandon, "host left out")
	e.ceph.LoseHost("c") // it has OSDs all the same
	e.checks(t, StorageHostsListed, change, actions.VerdictAbandon, "host left out")
	change.Nodes = append(change.Nodes, e.node("c"))
	e.checks(t, StorageHostsListed, change, actions.VerdictPass, "")
	e.ceph.Outage(true)
	e.checks(t, StorageHostsListed, change, actions.VerdictHold, "hosts unread")
	e.edit(`{"storage":{"useAllNodes":false,"nodes":[]}}`) // somebody else made a list of it
	e.checks(t, StorageHostsListed, change, actions.VerdictPass, "")
	e.objects.Forbid("get cephclusters")
	e.checks(t, StorageHostsListed, change, actions.VerdictHold, "unread")
}

// TestAHostIsNamedByWhatIsListedAlreadyAndWithoutItsDots, in the list that takes the place of all.
func TestAHostIsNamedByWhatIsListedAlreadyAndWithoutItsDots(t *testing.T) {
	e := installed(journal.RookCluster, `{"spec":{"storage":{"useAllNodes":true,"nodes":[{"name":"c"}]}}}`)
	e.ceph.AddHost("d-example-com", 13)
	change := journal.RookChange{Nodes: []journal.RookNode{e.node("a"), e.node("b"), {Name: "d", Hostname: "d.example.com"}}, Whole: true}
	e.checks(t, StorageHostsListed, change, actions.VerdictPass, "")
}

func TestANodeThatDoesNotSayItsHostnameIsListedByItsName(t *testing.T) {
	if got := compareWithEntry(journal.RookNode{Name: "a", UID: "1", Hostname: "a", Occupied: true}, kube.Node{Name: "a", UID: "1"}, ""); got.Kind != actions.VerdictPass {
		t.Errorf("it says %+v", got)
	}
}

func TestHostsThatAreLostMeanwhileAreNotCountedOn(t *testing.T) {
	e, change := installed(blockPool, size1), number(sizeAt, 1, 3)
	e.checks(t, StorageHostsThere, change, actions.VerdictPass, "")
	e.ceph.SetCrushWeight(2, 0)
	e.ceph.SetCrushWeight(12, 0) // CRUSH gives the host nothing
	e.checks(t, StorageHostsThere, change, actions.VerdictHold, "hosts")
	e.ceph.SetCrushWeight(12, 1)
	e.ceph.LoseHost("c")
	e.checks(t, StorageHostsThere, change, actions.VerdictHold, "hosts")
	e.ceph.Outage(true)
	e.checks(t, StorageHostsThere, change, actions.VerdictHold, "hosts unread")
}

func TestCopiesThatHaveNoRoomAreNotAskedFor(t *testing.T) {
	const gib = 1 << 30
	e, change := installed(blockPool, size1), number(sizeAt, 1, 3)
	e.ceph.AddPool("replicapool", 1, 1)
	e.ceph.Fill("replicapool", 100*gib)
	e.checks(t, RoomForCopies, change, actions.VerdictPass, "")
	for _, id := range []int{0, 1, 2, 10, 11, 12} {
		e.ceph.Shrink(id, 100*gib)
	}
	e.checks(t, RoomForCopies, change, actions.VerdictPass, "")
	e.ceph.Shrink(2, gib)
	e.ceph.Shrink(12, gib) // one host is small
	e.checks(t, RoomForCopies, change, actions.VerdictHold, "room")
	e.checks(t, RoomForCopies, number(sizeAt, 1, 2), actions.VerdictPass, "")
	e.ceph.SetHealth(ceph.Health{Status: ceph.HealthWarn, Checks: []ceph.Check{{Code: "OSD_NEARFULL", Muted: true}}})
	e.checks(t, RoomForCopies, number(sizeAt, 1, 2), actions.VerdictHold, "short")
	e.ceph.SetPool("replicapool", 3)
	e.checks(t, RoomForCopies, number(sizeAt, 1, 2), actions.VerdictAbandon, "lowered")
	e.ceph.LoseMgr(true)
	e.checks(t, RoomForCopies, change, actions.VerdictHold, "room unread")
}

func TestAnObjectThatIsNotWhatItWasIsLeftAlone(t *testing.T) {
	e, change := installed(blockPool, size1), number(sizeAt, 1, 2)
	e.checks(t, RookUnchanged, change, actions.VerdictPass, "")
	e.edit(`{"replicated":{"size":2}}`)
	e.checks(t, RookUnchanged, change, actions.VerdictPass, "") // the step is proved
	e.edit(`{"replicated":{"size":3}}`)
	e.checks(t, RookUnchanged, change, actions.VerdictAbandon, "moved")
	e.edit(`{"erasureCoded":{}}`)
	e.checks(t, RookUnchanged, change, actions.VerdictAbandon, "moved")
	e.objects.Forbid("get cephblockpools")
	e.checks(t, RookUnchanged, change, actions.VerdictHold, "unread")
	e.objects.Allow("get cephblockpools")
	e.objects.Remove(rook.ResourceRef(e.subject))
	e.checks(t, RookUnchanged, change, actions.VerdictAbandon, "gone")
	e.objects.Put(rook.ResourceRef(e.subject), size1)
	e.checks(t, RookUnchanged, change, actions.VerdictAbandon, "replaced")

	e = installed(journal.RookCluster, listsC)
	nodes := journal.RookChange{Nodes: []journal.RookNode{e.node("a")}}
	e.checks(t, RookUnchanged, nodes, actions.VerdictPass, "")
	e.edit(`{"storage":{"storageClassDeviceSets":[{}]}}`)
	e.checks(t, RookUnchanged, nodes, actions.VerdictAbandon, "no list")
	e.edit(`{}`)
	e.checks(t, RookUnchanged, nodes, actions.VerdictAbandon, "no list")
}

func TestAPlanAsksWhatItsChangeNeedsAndTakesTheStorage(t *testing.T) {
	for name, test := range map[string]struct {
		of     journal.Subject
		change journal.RookChange
		want   []string
	}{
		"nodes": {journal.RookCluster, journal.RookChange{Nodes: []journal.RookNode{{Name: "a"}}}, []string{RookUnchanged, StorageNodesReady}},
		"nodes instead of all": {
			journal.RookCluster,
			journal.RookChange{Nodes: []journal.RookNode{{Name: "a"}}, Whole: true},
			[]string{RookUnchanged, StorageNodesReady, StorageHostsListed},
		},
		"copies with hosts": {blockPool, number(sizeAt, 1, 2), []string{RookUnchanged, StorageHostsThere, RoomForCopies}},
		"copies": {
			blockPool, journal.RookChange{Numbers: map[string]journal.RookNumber{sizeAt: {From: 1, To: 2}}}, []string{RookUnchanged, RoomForCopies},
		},
		"fewer copies": {blockPool, journal.RookChange{Numbers: map[string]journal.RookNumber{sizeAt: {From: 3, To: 2}}}, []string{RookUnchanged}},
		"daemons":      {journal.RookCluster, number(journal.RookMons, 1, 3), []string{RookUnchanged, StorageHostsThere}},
	} {
		got, err := plan(t.Context(), journal.ActionRecord{Subject: test.of}, test.change)
		if err != nil || len(got.Steps) != 1 || !slices.Equal(got.Steps[0].Preflights, test.want) || !slices.Equal(got.Steps[0].Domains, []string{journal.DomainStorage}) {
			t.Errorf("%s: %v: the plan is %+v", name, err, got)
		}
	}
	if _, err := plan(t.Context(), journal.ActionRecord{}, journal.RookChange{}); err == nil || !strings.Contains(err.Error(), "the request has no change") {
		t.Errorf("a plan for nothing: %v", err)
	}
}

var _ Nodes = kube.API(nil)
