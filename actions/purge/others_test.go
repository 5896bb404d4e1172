package purge_test

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kubeadm"
)

// wantOthers checks that everything that is not w1's is as it was when the action
// was asked for.
func (s *whole) wantOthers() {
	s.T.Helper()
	if diff := cmp.Diff(s.others, s.ofOthers()); diff != "" {
		s.T.Errorf("what is not w1's (- before, + after):\n%s", diff)
	}
}

// ofOthers lists everything that is not w1's, wherever a purge removes things.
func (s *whole) ofOthers() []string {
	return slices.Concat(s.nodesOfOthers(), s.cephOfOthers(), s.rookOfOthers(), s.planeOfOthers())
}

func (s *whole) nodesOfOthers() (others []string) {
	nodes, _, _ := s.Cluster.Snapshot()
	for _, node := range nodes {
		if node.UID != s.node.UID {
			others = append(others, fmt.Sprintf("node %+v", node))
		}
	}
	return others
}

func (s *whole) cephOfOthers() (others []string) {
	tree := s.ceph.Snapshot()
	for _, host := range tree.Hosts {
		if host.Name != "w1" {
			others = append(others, fmt.Sprintf("CRUSH host %+v", host))
		}
	}
	for _, osd := range tree.OSDs {
		if !slices.ContainsFunc(s.refs, func(ref ceph.Ref) bool { return ref.ID == osd.ID }) {
			others = append(others, fmt.Sprintf("OSD %+v", osd))
		}
	}
	return others
}

func (s *whole) rookOfOthers() (others []string) {
	for _, d := range s.rook.Deployments() {
		if d.Hostname != "w1" {
			others = append(others, fmt.Sprintf("Deployment %+v", d))
		}
	}
	for _, name := range s.rook.Nodes() {
		if name != "w1" {
			others = append(others, "storage entry "+name)
		}
	}
	return others
}

func (s *whole) planeOfOthers() (others []string) {
	for _, member := range s.etcd.List() {
		if member.ID != s.member.ID {
			others = append(others, fmt.Sprintf("etcd member %+v", member))
		}
	}
	config, err := s.Cluster.KubeadmConfig(s.T.Context())
	endpoints, shapeErr := kubeadm.Endpoints(config.ClusterStatus)
	delete(endpoints, "w1")
	return append(others, fmt.Sprintf("endpoints %v %v %v", endpoints, err, shapeErr))
}
