package rook

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// hostnames are those of the nodes that are to be listed.
func hostnames(change journal.RookChange) (names []string) {
	for _, node := range change.Nodes {
		names = append(names, node.Hostname)
	}
	return names
}

func TestReadyNodesAreListedAndWhatIsListedStays(t *testing.T) {
	for name, test := range map[string]struct {
		policy  Policy
		storage func(*journal.RookFacts)
		want    []string
	}{
		"all nodes were used":       {limits, nil, []string{"a.local", "b.local"}},
		"none is listed":            {limits, lists(), []string{"a.local", "b.local"}},
		"one is listed":             {limits, lists("a", "x"), []string{"b.local"}},
		"all are listed":            {limits, lists("a", "b"), nil},
		"one is listed by its name": {limits, func(f *journal.RookFacts) { f.Storage = &journal.RookStorage{Nodes: []string{"a", "b.local"}} }, nil},
		"all are listed, and are not used for that": {limits, func(f *journal.RookFacts) {
			lists("a", "b")(f)
			f.Storage.AllNodes = true
		}, []string{"a.local", "b.local"}},
		"the list is a user's": {Policy{UserManaged: true, MaxCopies: 3}, nil, nil},
		"OSDs are on claims":   {limits, func(f *journal.RookFacts) { f.Storage = &journal.RookStorage{Claims: true} }, nil},
		"Ceph is elsewhere":    {limits, func(f *journal.RookFacts) { f.Storage = nil }, nil},
		"it is switched off":   {Policy{Off: "maintain_rook_storage_nodes is off"}, nil, nil},
		"only with a label":    {Policy{Label: "store", Value: "yes", MaxCopies: 3}, nil, []string{"d.local"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.policy, "b", "a")
			w.join("c", unready)
			if test.policy.Label != "" {
				w.join("d", labelled("yes"))
				w.join("e", labelled("no"))
				w.join("f", labelled("yes"), unready)
			}
			if test.storage == nil {
				test.storage = func(*journal.RookFacts) {}
			}
			w.hosts(1)
			w.cluster(asks(1, test.storage))
			rec, change := w.asked(cephCluster, journal.ActionAddStorageNodes)
			if got := hostnames(change); !slices.Equal(got, test.want) {
				t.Fatalf("to be listed are %q, want %q", got, test.want)
			}
			if state := w.state(cephCluster); (state == Changing) != (rec != nil) || (state == InStep) != (rec == nil) {
				t.Errorf("it is %s", state)
			}
		})
	}
}

func TestANodeIsListedAsSoonAsItIsReady(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, lists("a")))
	w.quiet(cephCluster)
	w.join("b", unready)
	w.quiet(cephCluster)
	w.join("b")
	rec, change := w.wants(cephCluster, journal.ActionAddStorageNodes)
	if change.Nodes[0] != (journal.RookNode{Name: "b", UID: "uid-b", Hostname: "b.local"}) || !strings.Contains(rec.Request.Reason, "node b is ready but not listed") {
		t.Errorf("asked for is %+v: %s", change, rec.Request.Reason)
	}
	w.made(rec, asks(2, lists("a", "b")), journal.OutcomeDone)
	w.quiet(cephCluster) // what was observed is older
	w.cluster(asks(2, lists("a", "b")))
	w.quiet(cephCluster)
}

// purge has somebody ask that the node be removed.
func (w *world) purge(name string) *journal.ActionRecord {
	w.T.Helper()
	w.Write(journal.Draft{
		Type: journal.TypeActionRequested, Subject: nodeOf(name), Action: "purge-" + name, Actor: "cli:root@a",
		Payload: journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "so", Manual: true},
	})
	return w.Open(nodeOf(name))
}

func TestANodeThatIsBeingPurgedIsNeverListed(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.cluster(asks(1, lists("a")))
	w.wants(cephCluster, journal.ActionAddStorageNodes)
	purge := w.purge("b")
	w.Decide()
	rec := w.open(cephCluster, journal.ActionAddStorageNodes)
	if rec.Cancelling == nil || rec.Cancelling.Reason != "node b is being purged" {
		t.Fatalf("the action is %+v", rec)
	}
	w.End(rec, journal.OutcomeCancelled)
	w.quiet(cephCluster)
	w.join("c")
	w.cluster(asks(2, lists("a")))
	if _, change := w.wants(cephCluster, journal.ActionAddStorageNodes); !slices.Equal(hostnames(change), []string{"c.local"}) {
		t.Errorf("to be listed are %q", hostnames(change))
	}
	w.End(purge, journal.OutcomeCancelled)
	w.made(w.open(cephCluster, journal.ActionAddStorageNodes), asks(3, lists("a", "c")), journal.OutcomeDone)
	if _, change := w.wants(cephCluster, journal.ActionAddStorageNodes); !slices.Equal(hostnames(change), []string{"b.local"}) {
		t.Errorf("to be listed are %q after the purge was cancelled", hostnames(change))
	}
}

func TestWhoTakesANodeOffAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	for generation := int64(1); generation < 5; generation += 2 {
		w.cluster(asks(generation, lists("a")))
		rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
		w.made(rec, asks(generation+1, lists("a", "b")), journal.OutcomeDone)
		w.Pass(time.Minute)
	}
	w.cluster(asks(5, lists("a")))
	w.quiet(cephCluster)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the storage nodes of CephCluster rook-ceph/rook-ceph") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.Pass(time.Hour)
	w.wants(cephCluster, journal.ActionAddStorageNodes)
}

// TestANodeThatIsLostMeanwhileKeepsNoOtherWaiting: what was to be listed is another list then.
func TestANodeThatIsLostMeanwhileKeepsNoOtherWaiting(t *testing.T) {
	w := newWorld(t, limits, "a", "b", "c")
	w.cluster(asks(1, lists("a")))
	rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
	w.End(rec, journal.OutcomeAbandoned) // c was not ready, by a live read
	w.quiet(cephCluster)
	w.join("c", unready)
	if _, change := w.wants(cephCluster, journal.ActionAddStorageNodes); !slices.Equal(hostnames(change), []string{"b.local"}) {
		t.Errorf("to be listed are %q", hostnames(change))
	}
}
