package rook

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal with nodes and what Rook and Ceph have.
type world struct{ *fsmtest.Journal }

var (
	cephCluster = withUID(journal.RookCluster, "uid-cluster")
	ceph        = withUID(journal.RookCeph, "fsid")
	pool        = withUID(journal.RookPools(journal.KindCephBlockPool, "replicapool"), "uid-pool")
	shared      = withUID(journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs"), "uid-fs")
)

func withUID(of journal.Subject, uid string) journal.Subject {
	of.UID = uid
	return of
}

// limits are the default numbers of copies.
var limits = Policy{MinCopies: 1, MaxCopies: 3, Pools: configured}

// configured are the custom resources with pools of the tests.
var configured = []journal.Subject{
	journal.RookPools(journal.KindCephBlockPool, "replicapool"), journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs"),
}

func newWorld(t *testing.T, p Policy, nodes ...string) *world {
	w := &world{fsmtest.New(t, fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(Machine, p), fsmnode.Capability(), Capability())}
	w.Pass(time.Minute)
	for _, name := range nodes {
		w.join(name)
	}
	return w
}

func nodeOf(name string) journal.Subject { return journal.NodeSubject(name, "uid-"+name) }

// join adds a ready node, or changes it.
func (w *world) join(name string, changes ...func(*journal.NodeFacts)) {
	w.T.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker, Hostname: name + ".local"}
	for _, change := range changes {
		change(&facts)
	}
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: nodeOf(name), Payload: journal.NodeObserved{NodeFacts: facts}})
}

func unready(f *journal.NodeFacts) {
	f.Taints = []journal.Taint{{Key: journal.TaintNotReady}}
}

func labelled(value string) func(*journal.NodeFacts) {
	return func(f *journal.NodeFacts) { f.Labels = map[string]string{"store": value} }
}

// asks is the CephCluster of kURL, with what is changed of it.
func asks(generation int64, changes ...func(*journal.RookFacts)) journal.RookFacts {
	facts := journal.RookFacts{
		Generation: generation, Version: "v1.10.0", Storage: &journal.RookStorage{AllNodes: true},
		Numbers: map[string]int{journal.RookMons: 1, journal.RookMgrs: 1},
	}
	for _, change := range changes {
		change(&facts)
	}
	return facts
}

// lists has the CephCluster list the hosts of the nodes.
func lists(nodes ...string) func(*journal.RookFacts) {
	return func(f *journal.RookFacts) {
		f.Storage = &journal.RookStorage{}
		for _, name := range nodes {
			f.Storage.Nodes = append(f.Storage.Nodes, name+".local")
		}
	}
}

func has(mons, mgrs int) func(*journal.RookFacts) {
	return func(f *journal.RookFacts) {
		f.Numbers = map[string]int{journal.RookMons: mons, journal.RookMgrs: mgrs}
	}
}

func (w *world) cluster(facts journal.RookFacts) { w.Observe(Machine, cephCluster, facts) }

// hosts observes that there are so many hosts with OSDs, and what is changed of what Ceph says
// besides.
func (w *world) hosts(n int, changes ...func(*journal.CephFacts)) {
	facts := journal.RookFacts{Ceph: &journal.CephFacts{Version: "16.2.15 pacific", Health: "HEALTH_OK"}}
	for i := range n {
		facts.Hosts = append(facts.Hosts, fmt.Sprintf("h%d", i))
	}
	for _, change := range changes {
		change(facts.Ceph)
	}
	w.Observe(Machine, ceph, facts)
}

// occupies has hosts have OSDs, whether or not they run.
func occupies(hosts ...string) func(*journal.CephFacts) {
	return func(f *journal.CephFacts) { f.Occupied = hosts }
}

// warns has Ceph call itself unwell for these reasons.
func warns(codes ...string) func(*journal.CephFacts) {
	return func(f *journal.CephFacts) { f.Health, f.Checks = "HEALTH_WARN", codes }
}

// keeps has Ceph keep a pool in so many copies.
func keeps(pool string, size int) func(*journal.CephFacts) {
	return func(f *journal.CephFacts) {
		f.Pools = append(f.Pools, journal.CephPool{Name: pool, Size: size, MinSize: 1})
	}
}

// pools observes a custom resource with pools.
func (w *world) pools(of journal.Subject, generation int64, sizes map[string]int) {
	w.Observe(Machine, of, journal.RookFacts{Generation: generation, Numbers: sizes})
}

const (
	poolSize     = "/spec/replicated/size"
	metadataSize = "/spec/metadataPool/replicated/size"
	dataSize     = "/spec/dataPools/0/replicated/size"
)

// asked decides, and returns what is asked for about the subject by an action of the kind;
// nil for nothing.
func (w *world) asked(of journal.Subject, kind journal.ActionKind) (rec *journal.ActionRecord, change journal.RookChange) {
	w.T.Helper()
	w.Decide()
	if rec = w.open(of, kind); rec == nil {
		return nil, journal.RookChange{}
	}
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil {
		w.T.Fatal(err)
	}
	return rec, change
}

// open returns the only open action of the kind about the subject, nil for none.
func (w *world) open(of journal.Subject, kind journal.ActionKind) (found *journal.ActionRecord) {
	w.T.Helper()
	for _, rec := range w.S.Actions {
		if rec.Subject != of || rec.Kind != kind {
			continue
		}
		if found != nil {
			w.T.Fatalf("both %s and %s are open", rec.ID, found.ID)
		}
		found = rec
	}
	return found
}

// quiet expects that nothing is asked for.
func (w *world) quiet(of journal.Subject) {
	w.T.Helper()
	for _, kind := range kinds() {
		if rec, _ := w.asked(of, kind.Name); rec != nil {
			w.T.Fatalf("EKCO asks for %+v", rec.Request)
		}
	}
}

// wants expects that an action of the kind is asked for.
func (w *world) wants(of journal.Subject, kind journal.ActionKind) (*journal.ActionRecord, journal.RookChange) {
	w.T.Helper()
	rec, change := w.asked(of, kind)
	if rec == nil {
		w.T.Fatalf("EKCO asks for no %s; refused: %+v", kind, w.S.Refusals)
	}
	return rec, change
}

// made plays the action to its end, after which the object is asked for that.
func (w *world) made(rec *journal.ActionRecord, facts journal.RookFacts, outcome journal.Outcome) {
	w.T.Helper()
	w.Play(rec, journal.StepChangeRook, facts)
	w.End(rec, outcome)
}

func (w *world) state(of journal.Subject) journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[of.UID].State
}

// refused returns the rule and reason of the only refusal.
func (w *world) refused() (rule, reason string) {
	w.T.Helper()
	w.Decide()
	if len(w.S.Refusals) != 1 {
		w.T.Fatalf("refused is %+v, want one", w.S.Refusals)
	}
	return w.S.Refusals[0].Rule, w.S.Refusals[0].Reason
}
