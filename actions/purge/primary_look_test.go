package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

func TestD6TheMemberIsFoundByTheNodesOfTheOtherPrimariesWhereNoPodTells(t *testing.T) {
	for name, leave := range map[string]func(s *whole){
		"no pod of an API server":      func(*whole) {},
		"no pod has the annotation":    func(s *whole) { s.Cluster.AddAPIServer("w1", ""); s.Cluster.AddAPIServer("p2", "") },
		"only the lost node's has it":  func(s *whole) { s.since122("w1"); s.Cluster.AddAPIServer("p2", "") },
		"one that is dead has it":      deadButForOne,
		"no pod, and the Node is gone": func(s *whole) { s.Cluster.RemoveNode("w1") },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.Cluster.SetKubeadmConfig122()
				leave(s)
				s.ask(journal.ActionRequested{Manual: true})
				s.RunToEnd(s.cfg())
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}

// deadButForOne has the pod of a primary alone whose member is dead too.
func deadButForOne(s *whole) {
	s.since122("p2")
	s.etcd.Kill(s.etcd.List()[1].ID)
	s.etcd.Add("p4", "10.9.0.4")
	s.etcd.Add("p5", "10.9.0.5")
}

// alone leaves w1 as the only primary that Kubernetes knows.
func (s *whole) alone() {
	s.Cluster.SetKubeadmConfig122()
	s.Cluster.RemoveNode("p2")
	s.Cluster.RemoveNode("p3")
}

func TestAPurgeIsNotPlannedWhileNoOtherPrimaryIsKnown(t *testing.T) {
	for name, leave := range map[string]func(s *whole){
		"the lost one is": func(s *whole) { s.since122("w1") },
		"none is":         func(*whole) {},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.alone()
				leave(s)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(time.Hour)
				s.WantStory("requested", `held "" by Plan`)
				s.wantTraces("node", "crush host [3 12 107]", "osd.3", "osd.12", "osd.107",
					"rook-ceph-osd-107", "rook-ceph-osd-12", "rook-ceph-osd-3", "storage entry", "etcd member")
				r.Halt()
			})
		})
	}
}

func TestAForcedPurgeLeavesTheMemberWhereNoOtherPrimaryIsKnownAndSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.alone()
		s.ask(journal.ActionRequested{Manual: true, Force: true})
		s.RunToEnd(s.cfg())
		s.wantTraces("etcd member")
		if s.Count("warned EtcdQuorumKept: EKCO removes no etcd member: find the etcd members: no other primary than w1 is known") != 1 {
			t.Errorf("not on record: %q", s.Story())
		}
	})
}

func TestThatNoPrimaryIsKnownIsADoubtAndNoTrace(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.alone()
		s.Cluster.RemoveNode("w1")
		traced := s.trace("w8")
		if len(traced.Found) != 0 || len(traced.Doubts) != 1 || !strings.Contains(traced.Doubts[0], "cannot read etcd: ") {
			t.Errorf("traced %+v", traced)
		}
	})
}

func TestAClusterThatKubeadmDidNotMakeHasNoStepsOfTheControlPlane(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.RemoveKubeadm()
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		s.wantTraces("etcd member")
		if s.Count("held")+s.Count("warned "+purge.EtcdQuorumKept)+s.Count("started remove-etcd-member") != 0 || s.LastLine() != "ended done" {
			t.Errorf("the story is %q", s.Story())
		}
	})
}
