package purge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/journal"
)

// joining takes the lost node's member away and adds one at its address that has
// not started.
func (s *whole) joining() etcd.Member {
	s.etcd.Forget(s.member.ID)
	return s.etcd.AddUnstarted(s.node.Facts.InternalIP)
}

// joins registers a Node at the lost node's address.
func (s *whole) joins(name string) {
	s.Cluster.AddNode(name, journal.RoleWorker) // kubeadm labels it last
	s.Cluster.SetInternalIP(name, s.node.Facts.InternalIP)
}

// outputs returns what a step that is done has put on record.
func (s *whole) outputs(step string) (outputs string) {
	for _, event := range s.Events() {
		if payload, err := event.Decode(); err == nil {
			if done, ok := payload.(*journal.StepDone); ok && done.Step == step {
				outputs = string(done.Outputs)
			}
		}
	}
	return outputs
}

func (s *whole) hasMember(id etcd.ID) bool {
	return slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == id })
}

func TestD5AMemberThatJoinsAtTheAddressHoldsThePlanUntilItHasStarted(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.joins("p9")
		fresh := s.joining()
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		if hold := s.Record().Holds[""]; hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, "another node has its address now") {
			t.Errorf("held by %+v", hold)
		}
		if !s.NodeExists() {
			t.Error("the purge began")
		}
		s.etcd.Forget(fresh.ID)
		fresh = s.etcd.Add("p9", s.node.Facts.InternalIP)
		r.End()
		s.wantTraces()
		if !s.hasMember(fresh.ID) {
			t.Error("the member of the node that joined was removed")
		}
	})
}

func TestD5AMemberThatJoinsAtTheAddressIsLeftAloneByForce(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.joins("p9")
		fresh := s.joining()
		s.ask(journal.ActionRequested{Manual: true, Force: true})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if !s.hasMember(fresh.ID) || s.Count("warned EtcdQuorumKept") != 1 {
			t.Errorf("the joining member is there: %v; %q", s.hasMember(fresh.ID), s.Story())
		}
	})
}

func TestD5AMemberThatHadNotStartedIsRemovedOnlyIfNobodyHasJoinedWhoseItMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(s *whole)
		why       string
	}{
		"nobody has":                    {func(*whole) {}, ""},
		"a node elsewhere has":          {func(s *whole) { s.Cluster.AddNode("p9", journal.RolePrimary) }, ""},
		"a node at the address has":     {func(s *whole) { s.joins("p9") }, "node p9"},
		"a node of the same name has":   {func(s *whole) { s.joins("w1") }, "node w1"},
		"the node has a member by name": {func(s *whole) { s.etcd.Add("w1", "10.9.0.77") }, "another member has the name w1"},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				fresh := s.joining()
				s.Cluster.AfterEffect = func(effect string) {
					if effect == "delete-node w1" {
						s.etcd.Cut(true)
					}
				}
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(time.Hour)
				test.meanwhile(s)
				s.etcd.Cut(false)
				r.End()
				if s.hasMember(fresh.ID) == (test.why == "") {
					t.Errorf("the member that had not started is there: %v; %q", s.hasMember(fresh.ID), s.Story())
				}
				if outputs := s.outputs("remove-etcd-member"); !strings.Contains(outputs, test.why) || (outputs == "") != (test.why == "") {
					t.Errorf("the step says %q, want %q", outputs, test.why)
				}
			})
		})
	}
}
