package purge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/journal"
)

// lonely takes another member down, so that without w1 quorum would be lost.
func (s *whole) lonely() etcd.Member {
	s.etcd.Revive(s.member.ID) // a node can be lost while its etcd answers
	other := s.etcd.List()[1]
	s.etcd.Kill(other.ID)
	return other
}

func TestD5Q27AManualPurgeThatWouldLoseQuorumIsRefusedBeforeAnythingIsDestroyed(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.lonely()
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		s.wantAll()
		if last := s.LastLine(); !strings.HasPrefix(last, "ended abandoned") || !strings.Contains(last, "--force") {
			t.Errorf("the action %s", last)
		}
	})
}

// askedThen asks for a purge that waits for policy, lets something happen, and
// then lets the purge go on.
func (s *whole) askedThen(request journal.ActionRequested, happens func()) *actionstest.Running {
	policy := actionstest.NewPreflight(actions.Hold("not yet"))
	cfg := s.cfg()
	cfg.Preflights["OneAtATime"] = policy
	s.ask(request)
	r := s.Start(cfg)
	s.Pass(time.Minute)
	happens()
	policy.SetVerdict(actions.Pass())
	s.Pass(time.Hour)
	return r
}

func TestD5MembersThatDoNotAnswerHaveNoQuorum(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) { // the rest of the quorum, and the network
		for _, test := range []struct {
			silence func()
			called  string
		}{
			{func() { s.etcd.Kill(s.etcd.List()[1].ID) }, "etcd has no quorum now"},
			{func() { s.etcd.Cut(true) }, "EKCO assumes that it has no quorum"},
		} {
			r := s.askedThen(journal.ActionRequested{Manual: true}, test.silence)
			if err := r.Wait(); err != nil {
				t.Fatal(err)
			}
			s.wantAll()
			if last := s.LastLine(); !strings.HasPrefix(last, "ended abandoned") || !strings.Contains(last, test.called) || !strings.Contains(last, "--force") {
				t.Errorf("the action %s", last)
			}
			s.etcd.Revive(s.etcd.List()[1].ID)
		}
	})
	for name, request := range map[string]journal.ActionRequested{"automatic": {}, "forced": {Manual: true, Force: true}} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.askedThen(request, func() { s.etcd.Cut(true) })
				if request.Force {
					s.wantTraces("etcd member", "kubeadm endpoint")
					r.Halt()
					return
				}
				if hold := s.Record().Holds["check"]; hold.Preflight != purge.EtcdQuorumKept {
					t.Errorf("held by %+v", hold)
				}
				s.etcd.Cut(false)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestMembersThatCannotBeAskedAreWaitedFor(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		var missing atomic.Bool
		dial := func(endpoints []string) (etcd.API, error) {
			if missing.Load() {
				return nil, etcd.ErrCertificates
			}
			return s.etcd.Dial(endpoints)
		}
		s.options = func(f *actionstest.Fuse) []purge.Option {
			return append(s.purgeOptions(f), purge.WithControlPlane(purge.ControlPlane{Kubeadm: s.Cluster, Etcd: dial}))
		}
		r := s.askedThen(journal.ActionRequested{Manual: true}, func() { missing.Store(true) })
		s.wantAll()
		if hold := s.Record().Holds["check"]; hold.Preflight != purge.EtcdQuorumKept || !strings.Contains(hold.Reason, "cannot tell") {
			t.Errorf("held by %+v", hold)
		}
		missing.Store(false)
		r.End()
		s.wantTraces()
	})
}

func TestD5Q27AnAutomaticPurgeThatWouldLoseQuorumHoldsUntilAMemberIsBack(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		other := s.lonely()
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(10 * time.Hour)
		s.wantAll()
		if hold := s.Record().Holds["check"]; hold.Preflight != purge.EtcdQuorumKept {
			t.Errorf("held by %+v", hold)
		}
		s.etcd.Revive(other.ID)
		r.End()
		s.wantTraces()
	})
}

func TestQ27AForcedPurgeGoesPastQuorumOnRecord(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		other := s.lonely()
		s.ask(journal.ActionRequested{Manual: true, Force: true})
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		s.wantTraces("etcd member", "kubeadm endpoint") // etcd itself refuses
		if s.Count("warned EtcdQuorumKept") != 1 || !strings.Contains(strings.Join(s.Story(), "\n"), "(--force)") {
			t.Errorf("not on record: %q", s.Story())
		}
		s.etcd.Revive(other.ID)
		r.End()
		s.wantTraces()
	})
}

func TestQuorumIsCheckedAgainBeforeTheMemberIsRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.etcd.Revive(s.member.ID)
		s.Cluster.AfterEffect = func(effect string) {
			if effect == "delete-node w1" {
				s.etcd.Kill(s.etcd.List()[1].ID)
			}
		}
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		if hold := s.Record().Holds["remove-etcd-member"]; hold.Preflight != purge.EtcdQuorumKept || strings.Contains(hold.Reason, "--force") {
			t.Errorf("held by %+v; %q", hold, s.Story())
		}
		if got := s.etcd.Count("remove-member " + s.member.ID.String()); got != 0 {
			t.Errorf("%d removals were asked for", got)
		}
		s.etcd.Revive(s.etcd.List()[1].ID)
		r.End()
		s.wantTraces()
	})
}

func TestALivePrimaryOfTwoCanBePurgedByHand(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.etcd.Forget(s.etcd.List()[1].ID)
		s.etcd.Revive(s.member.ID)
		s.Cluster.ReturnNode("w1")
		s.ask(journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
		s.RunToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestD5AMemberThatReusesTheAddressUnderAnotherNameIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.etcd.Forget(s.member.ID)
		fresh := s.etcd.Add("w9", s.node.Facts.InternalIP)
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if !slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == fresh.ID }) {
			t.Error("the member of another node was removed")
		}
	})
}

func TestD5AReplacementThatJoinedInTheMiddleKeepsItsMemberAndItsEndpoint(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.AfterEffect = func(effect string) {
			if effect == "delete-node w1" {
				s.etcd.Cut(true)
			}
		}
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.Cluster.AddNode("w1", journal.RolePrimary)
		s.etcd.Forget(s.member.ID)
		fresh := s.etcd.Add("w1", s.node.Facts.InternalIP)
		s.etcd.Cut(false)
		r.End()
		if !slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == fresh.ID }) {
			t.Error("the member of the replacement was removed")
		}
		if config, _ := s.Cluster.KubeadmConfig(s.T.Context()); !strings.Contains(config.ClusterStatus, "w1:") {
			t.Error("the endpoint of the replacement was removed")
		}
	})
}

func TestD6TheMemberOfANodeDeletedByHandIsRemoved(t *testing.T) {
	for name, ask := range map[string]func(s *whole){
		"that EKCO observed before": func(s *whole) { s.ask(journal.ActionRequested{Manual: true}) },
		"of which no facts are known": func(s *whole) {
			s.Request(journal.NodeSubject("w1", s.node.UID), journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true})
		},
	} {
		for _, shape := range []string{"before 1.22", "since 1.22"} {
			t.Run(name+", Kubernetes "+shape, func(t *testing.T) {
				inWhole(t, func(t *testing.T, s *whole) {
					if shape == "since 1.22" {
						s.since122("w1", "p2", "p3")
					}
					s.Cluster.RemoveNode("w1")
					ask(s)
					s.RunToEnd(s.cfg())
					s.wantTraces()
					s.wantOthers()
				})
			})
		}
	}
}

// since122 makes kubeadm's ConfigMap as newer Kubernetes has it, with pods of
// API servers on these nodes.
func (s *whole) since122(nodes ...string) {
	s.Cluster.SetKubeadmConfig122()
	for _, node := range nodes {
		ip := s.node.Facts.InternalIP
		if node != "w1" {
			ip = "10.9.0." + node[1:]
		}
		s.Cluster.AddAPIServer(node, ip+":6443")
	}
}

func TestWithoutAClusterStatusTheMembersAreFoundByThePodsOfAPIServers(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.since122("w1", "p2", "p3")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if s.Count("started remove-kubeadm-endpoint") != 0 {
			t.Errorf("there is no endpoint to remove: %q", s.Story())
		}
	})
}

func TestAMalformedClusterStatusIsRepairedAlsoWhenTheNodeIsNotInIt(t *testing.T) {
	const malformed = `apiendpoints:
  p2:
    advertiseaddress: 10.9.0.2
    bindport: 6443
  p3:
    advertiseaddress: 10.9.0.3
    bindport: 6443
typemeta:
  kind: ClusterStatus
  apiversion: kubeadm.k8s.io/v1beta2
`
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.SetKubeadmConfig(malformed)
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		config, err := s.Cluster.KubeadmConfig(s.T.Context())
		if err != nil || !strings.Contains(config.ClusterStatus, "apiEndpoints:") || strings.Contains(config.ClusterStatus, "typemeta") {
			t.Errorf("the document is\n%s", config.ClusterStatus)
		}
		s.wantTraces()
	})
}

func TestAClusterStatusThatEKCODoesNotUnderstandStallsOnlyTheLastStep(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.since122("w1", "p2", "p3")
		s.Cluster.SetKubeadmConfig("- what\n- is this\n")
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces()
		if stalled := s.Record().Stalled; stalled == nil || !strings.Contains(stalled.Reason, "edit it by hand") {
			t.Errorf("stalled: %+v", stalled)
		}
		r.Halt()
	})
}

func TestAMemberThatCannotBeToldFromAnotherHoldsThePlanAndForceLeavesItAlone(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		inWhole(t, func(t *testing.T, s *whole) {
			s.etcd.SetPeerURLs(s.member.ID, "https://10.77.0.1:2380")
			s.ask(journal.ActionRequested{Manual: true})
			r := s.Start(s.cfg())
			s.Pass(time.Hour)
			s.wantAll()
			if hold := s.Record().Holds[""]; hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, "etcdctl member remove") {
				t.Errorf("held by %+v", hold)
			}
			r.Halt()
		})
	})
	t.Run("forced", func(t *testing.T) {
		inWhole(t, func(t *testing.T, s *whole) {
			s.etcd.SetPeerURLs(s.member.ID, "https://10.77.0.1:2380")
			s.ask(journal.ActionRequested{Manual: true, Force: true})
			s.RunToEnd(s.cfg())
			s.wantTraces("etcd member")
			if s.Count("warned EtcdQuorumKept") != 1 {
				t.Errorf("not on record: %q", s.Story())
			}
		})
	})
}

func TestAWorkerHasNoStepsOfTheControlPlane(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		node := s.Cluster.AddNode("x1", journal.RoleWorker)
		s.Cluster.LoseNode("x1")
		s.etcd.Cut(true)
		s.requestPurge(node, journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		done := 0
		for _, line := range s.Story() {
			if strings.HasPrefix(line, "done ") {
				done++
			}
		}
		// The check, the Node, and an entry in the CephCluster that may come yet.
		if s.LastLine() != "ended done" || !slices.Contains(s.Story(), "planned 3") || done != 3 {
			t.Errorf("the journal says %q", s.Story())
		}
	})
}

func TestAWorkerDeletedByHandIsKnownToHaveBeenOne(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.etcd.Cut(true)
		s.Request(journal.NodeSubject("x1", "uid-x1"), journal.ActionRequested{
			Kind: journal.ActionPurgeNode, Manual: true, Input: journal.PurgeInput{Node: &journal.NodeFacts{Role: journal.RoleWorker}},
		})
		s.RunToEnd(s.cfg())
		if s.LastLine() != "ended done" {
			t.Errorf("the action %s", s.LastLine())
		}
	})
}

func TestTheSlowestPartDoesNotDelayTheOthers(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.SetLatency(time.Second)
		s.ask(journal.ActionRequested{})
		done := make(map[string]time.Duration)
		began := time.Now()
		s.RunToEnd(s.cfg())
		for _, event := range s.Events() {
			if payload, err := event.Decode(); err == nil {
				if step, ok := payload.(*journal.StepDone); ok {
					done[step.Step] = event.Time.Sub(began)
				}
			}
		}
		if done["remove-kubeadm-endpoint"] >= done["out-osds"] {
			t.Errorf("the control plane waited for Ceph: %v", fmt.Sprint(done))
		}
	})
}
