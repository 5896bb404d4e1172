package purge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// storageTraces is what the node has in Rook and Ceph.
func (s *whole) storageTraces() []string {
	return slices.DeleteFunc(s.traces(), func(trace string) bool {
		return trace == "node" || trace == "etcd member" || trace == "kubeadm endpoint"
	})
}

func TestAPurgeRemovesOSDsUnlessAskedNotTo(t *testing.T) {
	yes, no := true, false
	for name, test := range map[string]struct {
		nodeListOnlyOnRequest bool
		asked                 *bool
		goes                  bool
		left                  []string
	}{
		"managed":                       {goes: true},
		"managed, but asked not to":     {asked: &no},
		"managed, and asked to":         {asked: &yes, goes: true},
		"not managed":                   {nodeListOnlyOnRequest: true, goes: true, left: []string{"storage entry"}},
		"not managed, but asked to":     {nodeListOnlyOnRequest: true, asked: &yes, goes: true},
		"not managed, and asked not to": {nodeListOnlyOnRequest: true, asked: &no},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.nodeListOnlyOnRequest = test.nodeListOnlyOnRequest
				before := s.storageTraces()
				s.ask(journal.ActionRequested{Manual: true, Input: journal.PurgeInput{MaintainRook: test.asked}})
				s.RunToEnd(s.cfg())
				if test.goes {
					s.wantTraces(test.left...)
					s.wantWarning(purge.RookManaged, "")
					if kept := s.facts().Storage.EntryKept != ""; kept != (len(test.left) > 0) {
						t.Errorf("the plan says that the entry is kept: %v", kept)
					}
					return
				}
				if left := s.storageTraces(); !slices.Equal(left, before) {
					t.Errorf("left in Rook and Ceph: %v, want %v", left, before)
				}
				if s.NodeExists() {
					t.Error("the Node is left")
				}
				s.wantWarning(purge.RookManaged, "without --maintain_rook_storage_nodes=false")
				traced := purge.NewTracer(s.Cluster, s.Config(nil).Log, s.purgeOptions(nil)...)
				if found := traced.Trace(t.Context(), "w1", &yes).Found; len(found) != 3 {
					t.Errorf("found afterwards, when asked to look: %v", found)
				}
				if left := traced.Trace(t.Context(), "w1", &no); len(left.Found) != 0 || len(left.Doubts) != 1 {
					t.Errorf("traced without a look into Rook: %+v", left)
				}
			})
		})
	}
}

// wantWarning wants the preflight to have warned so, or not at all.
func (s *whole) wantWarning(preflight, want string) {
	s.T.Helper()
	var warned string
	for _, event := range s.Events() {
		payload, err := event.Decode()
		if err != nil {
			s.T.Fatal(err)
		}
		if w, ok := payload.(*journal.ActionWarned); ok && w.Preflight == preflight {
			warned = w.Warning
		}
	}
	if want == "" && warned != "" || !strings.Contains(warned, want) {
		s.T.Errorf("%s warned %q, want %q", preflight, warned, want)
	}
}

// TestAllNodesOfRookLoseTheirOSDs: a purge removes them with kURL's rookShouldUseAllNodes, which sets
// maintain_rook_storage_nodes to false and Rook's useAllNodes to true.
func TestAllNodesOfRookLoseTheirOSDs(t *testing.T) {
	for name, request := range map[string]journal.ActionRequested{"by hand": {Manual: true}, "automatic": {}, "live": live} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.nodeListOnlyOnRequest = true
				s.rook.UseAllNodes(true)
				s.reconcile = 30 * time.Second
				if name == "live" {
					s.runs(5 * time.Second)
				}
				s.ask(request)
				s.Start(s.cfg()).End()
				s.wantTraces("storage entry")
			})
		})
	}
}

// TestAnEntryFoundLaterIsKeptWhereRookIsNotManaged: Rook could not be read when the purge was planned.
func TestAnEntryFoundLaterIsKeptWhereRookIsNotManaged(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.nodeListOnlyOnRequest = true
		s.rook.Forbid(readsOfRook...)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		s.rook.Allow(readsOfRook...)
		r.End()
		s.wantTraces("storage entry")
	})
}

func TestAPurgeOfAWorkerWarnsOfRookOnlyWhereThereIsOne(t *testing.T) {
	for name, test := range map[string]struct {
		world func(s *whole)
		want  string
	}{
		"a CephCluster": {func(*whole) {}, "there is a CephCluster"},
		"none":          {func(s *whole) { s.rook.SetInstallation(rook.Installation{}) }, ""},
		"who can tell":  {func(s *whole) { s.rook.Forbid(rooksim.GetCephClusters) }, "there may be a CephCluster"},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.world(s)
				s.node = s.Cluster.AddNode("w5", journal.RoleWorker)
				s.Cluster.LoseNode("w5")
				no := false
				s.requestPurge(s.node, journal.ActionRequested{Manual: true, Input: journal.PurgeInput{MaintainRook: &no}})
				s.RunToEnd(s.cfg())
				s.wantWarning(purge.RookManaged, test.want)
			})
		})
	}
}

func TestAnAutomaticPurgeIsNotHeldBecauseRookIsNotManaged(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.nodeListOnlyOnRequest = true
		s.ask(journal.ActionRequested{})
		began := time.Now()
		s.RunToEnd(s.cfg())
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %s", took)
		}
		s.wantWarning(purge.RookManaged, "")
	})
}
