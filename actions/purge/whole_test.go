package purge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/etcd/etcdsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// world is a world of nodes in which one is purged.
type world struct {
	*nodestest.World
	// options, when set, are the parts of a purge as one incarnation reaches
	// them; a nil fuse never burns. describe tells of what they reach.
	options  func(f *actionstest.Fuse) []purge.Option
	describe func() string
}

func newWorld(w *actionstest.World) *world { return &world{World: nodestest.New(w)} }

// inBubble runs a test with a fake clock, side by side with others.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	actionstest.InBubble(t, func(w *actionstest.World) { test(w.T, newWorld(w)) })
}

// parts returns the parts of a purge beyond the Node.
func (w *world) parts(f *actionstest.Fuse) []purge.Option {
	if w.options == nil {
		return nil
	}
	return w.options(f)
}

// kinds are the actions as one incarnation runs them.
func (w *world) kinds(f *actionstest.Fuse) []actions.Definition {
	return []actions.Definition{purge.New(nodestest.Mortal(w.Cluster, f), w.parts(f)...)}
}

func (w *world) cfg() actions.Config { return w.Config(w.kinds(nil)) }

// policy returns the preflights that the product's wiring supplies, all with
// the same answer.
func policy(verdict actions.Verdict) map[string]actions.Preflight {
	return actionstest.Policy(verdict, nodestest.Rules(journal.ActionPurgeNode)...)
}

// requestPurge puts the request of a node's purge on disk as the machines write
// it: with what was last observed of the node.
func (w *world) requestPurge(node kube.Node, request journal.ActionRequested) {
	w.T.Helper()
	request.Kind = journal.ActionPurgeNode
	input := journal.PurgeInputOf(request)
	if input.Node == nil {
		facts := node.Facts
		if now, err := w.Cluster.Node(w.T.Context(), node.Name); err == nil && now.UID == node.UID {
			facts = now.Facts
		}
		input.Node = &facts
	}
	request.Input = input
	w.Request(journal.NodeSubject(node.Name, node.UID), request)
}

// whole is a world with everything that a primary with OSDs leaves behind: w1 is
// lost, p2 and p3 are fine.
type whole struct {
	*world
	ceph   *cephsim.Cluster
	rook   *rooksim.Rook
	etcd   *etcdsim.Cluster
	node   kube.Node
	member etcd.Member
	refs   []ceph.Ref
	wait   time.Duration
	// reconcile is how long after a change Rook does something about it.
	reconcile time.Duration
	// others is what was not w1's when it was asked for last.
	others []string
	// userManaged is set when the installer owns the list of storage nodes.
	userManaged bool
	// nodeListOnlyOnRequest is set when maintain_rook_storage_nodes is false.
	nodeListOnlyOnRequest bool
}

const clusterStatus = `apiEndpoints:
  p2:
    advertiseAddress: 10.9.0.2
    bindPort: 6443
  p3:
    advertiseAddress: 10.9.0.3
    bindPort: 6443
  w1:
    advertiseAddress: %s
    bindPort: 6443
apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterStatus
`

// lostPrimary adds w1 with the OSDs 3, 12 and 107, and loses it.
func lostPrimary(w *world) *whole {
	s := &whole{world: w, ceph: cephsim.New(), rook: rooksim.New(), etcd: etcdsim.New()}
	s.node = w.Cluster.AddNode("w1", journal.RolePrimary)
	s.member = s.etcd.Add("w1", s.node.Facts.InternalIP)
	for i, name := range []string{"p2", "p3"} {
		ip := fmt.Sprintf("10.9.0.%d", i+2)
		w.Cluster.AddNode(name, journal.RolePrimary)
		w.Cluster.SetInternalIP(name, ip)
		s.etcd.Add(name, ip)
		s.ceph.AddHost(name, i+20)
		s.rook.AddOSD(i+20, name)
		s.rook.ListNode(name)
	}
	s.refs = s.ceph.AddHost("w1", 3, 12, 107)
	for _, ref := range s.refs {
		s.rook.AddOSD(ref.ID, "w1")
	}
	s.rook.ListNode("w1")
	w.Cluster.SetKubeadmConfig(fmt.Sprintf(clusterStatus, s.node.Facts.InternalIP))
	w.options, w.describe = s.purgeOptions, s.state
	w.BeforeRequest = func() { s.others = s.ofOthers() }
	s.lose()
	return s
}

func (s *whole) lose() {
	s.Cluster.LoseNode("w1")
	s.ceph.LoseHost("w1")
	s.etcd.Kill(s.member.ID)
}

// purgeOptions are the product's parts as one incarnation reaches them.
func (s *whole) purgeOptions(f *actionstest.Fuse) []purge.Option {
	storage := purge.Storage{Ceph: s.ceph, Rook: s.rook, Wait: s.wait, UserManaged: s.userManaged, NodeListOnlyOnRequest: s.nodeListOnlyOnRequest}
	plane := purge.ControlPlane{Kubeadm: s.Cluster, Etcd: s.etcd.Dial}
	if f != nil {
		storage.Ceph, storage.Rook = mortalCeph{s.ceph, f}, mortalRook{s.rook, f}
		plane.Kubeadm = mortalKubeadm{s.Cluster, f}
		plane.Etcd = func(endpoints []string) (etcd.API, error) {
			api, err := s.etcd.Dial(endpoints)
			return mortalEtcd{api, f}, err
		}
	}
	return []purge.Option{purge.WithStorage(storage), purge.WithControlPlane(plane)}
}

func (s *whole) ask(request journal.ActionRequested) {
	s.requestPurge(s.node, request)
}

// traces lists what is left of w1.
func (s *whole) traces() (traces []string) {
	if s.NodeExists() {
		traces = append(traces, "node")
	}
	tree := s.ceph.Snapshot()
	if host, ok := tree.Host("w1"); ok {
		traces = append(traces, fmt.Sprint("crush host ", host.OSDs))
	}
	for _, ref := range s.refs {
		if osd, ok := tree.OSD(ref.ID); ok && osd.UUID == ref.UUID {
			traces = append(traces, ceph.Names(ref.ID))
		}
	}
	traces = append(traces, s.deployments()...)
	if slices.Contains(s.rook.Nodes(), "w1") {
		traces = append(traces, "storage entry")
	}
	if slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == s.member.ID }) {
		traces = append(traces, "etcd member")
	}
	config, err := s.Cluster.KubeadmConfig(s.T.Context())
	if err == nil && strings.Contains(config.ClusterStatus, "w1:") {
		traces = append(traces, "kubeadm endpoint")
	}
	return traces
}

func (s *whole) wantTraces(want ...string) {
	s.T.Helper()
	if got := s.traces(); !slices.Equal(got, want) {
		s.T.Errorf("left of the node are %q, want %q; %q", got, want, s.Story())
	}
}

// deployments returns the names of the Deployments on w1.
func (s *whole) deployments() (names []string) {
	return s.deploymentsOn("w1")
}

// deploymentsOn returns the names of the Deployments that are bound to a machine.
func (s *whole) deploymentsOn(hostname string) (names []string) {
	for _, d := range s.rook.Deployments() {
		if d.Hostname == hostname {
			names = append(names, d.Name)
		}
	}
	return names
}

// wantAll checks that nothing was touched.
func (s *whole) wantAll() {
	s.T.Helper()
	s.wantTraces("node", "crush host [3 12 107]", "osd.3", "osd.12", "osd.107",
		"rook-ceph-osd-107", "rook-ceph-osd-12", "rook-ceph-osd-3", "storage entry", "etcd member", "kubeadm endpoint")
}

// state is what everything but Kubernetes has come to, and how often it changed.
func (s *whole) state() string {
	changes := 0
	for _, e := range s.rook.Effects() {
		if e.Changed {
			changes++
		}
	}
	for _, e := range s.ceph.Effects() {
		if e.Changed {
			changes++
		}
	}
	for _, e := range s.etcd.Effects() {
		if e.Changed {
			changes++
		}
	}
	return fmt.Sprintf("left %q, listed %v, %d members, %d other changes, of others %q",
		s.traces(), s.rook.Nodes(), len(s.etcd.List()), changes, s.ofOthers())
}

// inWhole runs a test on a lost primary with a fake clock.
func inWhole(t *testing.T, test func(t *testing.T, s *whole)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) { test(t, lostPrimary(w)) })
}

// stepOf names the step that an effect belongs to.
func stepOf(effect string) string {
	verb, object, _ := strings.Cut(effect, " ")
	switch verb {
	case "osd-down", "osd-out":
		return "out-osds"
	case "osd-in", "osd-reweight":
		return "in-osds"
	case "add-storage-node":
		return "restore-storage-entry"
	case "osd-purge":
		return "purge-osd " + object
	case "crush-rm":
		return "remove-crush-host"
	case "remove-member":
		return "remove-etcd-member"
	case "scale-down", "delete-deployment":
		return "remove-osd-deployment " + object
	case "remove-storage-node":
		return "remove-storage-entry"
	case "write-cluster-status":
		return "remove-kubeadm-endpoint"
	}
	return effect
}

// watched fails the test on an effect without a record.
func (s *whole) watched() *whole {
	s.Cluster.BeforeEffect = s.mustBeOnRecord
	s.ceph.BeforeEffect, s.etcd.BeforeEffect, s.rook.BeforeEffect = s.mustBeOnRecord, s.mustBeOnRecord, s.mustBeOnRecord
	return s
}

// mustBeOnRecord fails the test when the effect's step is not open on disk.
func (s *whole) mustBeOnRecord(effect string) { s.MustBeOnRecord(stepOf(effect)) }
