package purge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// trace looks for a node that EKCO never saw.
func (s *whole) trace(name string) purge.Traced {
	return purge.NewTracer(s.Cluster, s.Config(nil).Log, s.options(nil)...).Trace(s.T.Context(), name, nil)
}

// listEndpoint adds a node to the ClusterStatus.
func (s *whole) listEndpoint(name, ip string) {
	s.T.Helper()
	config, err := s.Cluster.KubeadmConfig(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	entry := fmt.Sprintf("apiEndpoints:\n  %s:\n    advertiseAddress: %s\n    bindPort: 6443\n", name, ip)
	s.Cluster.SetKubeadmConfig(strings.Replace(config.ClusterStatus, "apiEndpoints:\n", entry, 1))
}

func TestATraceInAnyOnePlaceIsFound(t *testing.T) {
	for place, test := range map[string]struct {
		name  string
		leave func(s *whole)
		want  string
	}{
		"CRUSH host":       {"w8", func(s *whole) { s.ceph.AddHost("w8", 55, 7); s.ceph.LoseHost("w8") }, "CRUSH host w8 with osd.7, osd.55"},
		"dashes for dots":  {"w8.lan", func(s *whole) { s.ceph.AddHost("w8-lan", 55); s.ceph.LoseHost("w8-lan") }, "CRUSH host w8-lan with osd.55"},
		"empty host":       {"w8", func(s *whole) { s.ceph.AddHost("w8") }, "CRUSH host w8, which is empty"},
		"Deployments":      {"w8", func(s *whole) { s.rook.AddOSD(55, "w8"); s.rook.AddOSD(7, "w8") }, "Deployment rook-ceph-osd-55, rook-ceph-osd-7"},
		"CephCluster":      {"w8", func(s *whole) { s.rook.ListNode("w8") }, "an entry in the CephCluster"},
		"etcd member":      {"w8", func(s *whole) { s.etcd.Add("w8", "10.9.0.8") }, "etcd member w8 (id "},
		"two members":      {"w8", func(s *whole) { s.etcd.Add("w8", "10.9.0.8"); s.etcd.Add("w8", "10.9.0.9") }, "cannot identify"},
		"kubeadm endpoint": {"w8", func(s *whole) { s.listEndpoint("w8", "10.9.0.8") }, "endpoint 10.9.0.8:6443 in kubeadm's ClusterStatus"},
	} {
		t.Run(place, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.leave(s)
				traced := s.trace(test.name)
				if len(traced.Found) != 1 || !strings.Contains(traced.Found[0], test.want) || len(traced.Doubts) != 0 {
					t.Errorf("traced %+v, want %q", traced, test.want)
				}
				if len(s.Cluster.Effects())+len(s.ceph.Effects())+len(s.rook.Effects())+len(s.etcd.Effects()) != 0 {
					t.Error("something was changed")
				}
				if near := s.trace("w9"); len(near.Found) != 0 {
					t.Errorf("traced another name by it: %+v", near)
				}
			})
		})
	}
}

func TestANameThatLeftNothingHasNoTraces(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		// That the document is malformed, a pod that Kubernetes removes by itself,
		// and a member without a name are nobody's traces.
		malformed := strings.NewReplacer("apiEndpoints", "apiendpoints", "advertiseAddress", "advertiseaddress", "bindPort", "bindport")
		s.Cluster.SetKubeadmConfig(malformed.Replace(fmt.Sprintf(clusterStatus, s.node.Facts.InternalIP)))
		s.Cluster.AddAPIServer("w8", "10.9.0.8:6443")
		s.etcd.Revive(s.member.ID)
		s.etcd.AddUnstarted("10.9.0.9")
		traced := s.trace("w8")
		slices.Sort(traced.Names)
		want := purge.Traced{
			Places: []string{"Rook", "Ceph", "kubeadm's endpoints", "etcd"},
			Names:  []string{"p2", "p2", "p3", "p3", "w1", "w1"},
		}
		if diff := cmp.Diff(want, traced); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAClusterWithoutRookIsNoDoubt(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.SetInstallation(rook.Installation{Why: "there is no CephCluster rook-ceph/rook-ceph"})
		if traced := s.trace("w8"); len(traced.Doubts) != 0 || slices.Contains(traced.Places, "Rook") {
			t.Errorf("traced %+v", traced)
		}
	})
}

func TestOnlyWhatThereIsIsAPlaceToLook(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(s *whole)
		want  purge.Traced
	}{
		"no kubeadm-config and no API server": {
			func(*whole) {},
			purge.Traced{
				Places:     []string{"Rook", "Ceph"},
				NodeTraced: journal.NodeTraced{Doubts: []string{"etcd was not asked: kubeadm did not create this cluster, so EKCO knows no address of etcd"}},
			},
		},
		"no kubeadm-config": {
			func(s *whole) { s.Cluster.AddAPIServer("p2", "10.9.0.2:6443") },
			purge.Traced{Places: []string{"Rook", "Ceph", "etcd"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.Cluster.RemoveKubeadm()
				test.leave(s)
				traced := s.trace("w8")
				traced.Names = nil
				if diff := cmp.Diff(test.want, traced); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestWhatNoNodeCanBeCalledIsNotLookedFor(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.etcd.AddUnstarted("10.9.0.9")
		for _, name := range []string{"", "-w8", "W8", "w8 ", "w8/../w1", "--force", strings.Repeat("a", 254)} {
			if traced := s.trace(name); len(traced.Found) != 0 || len(traced.Places) != 0 || len(traced.Doubts) != 1 {
				t.Errorf("%q: %+v", name, traced)
			}
		}
	})
}

func TestAPlaceThatDoesNotAnswerIsADoubtAndNotAnAbsence(t *testing.T) {
	for place, test := range map[string]struct {
		silence   func(s *whole)
		want      string
		notLooked string
	}{
		"no tools pod":      {func(s *whole) { s.ceph.Outage(true) }, "cannot read Ceph", "Ceph"},
		"no quorum in Ceph": {func(s *whole) { s.ceph.Hang(true) }, "cannot read Ceph", "Ceph"},
		"Rook":              {func(s *whole) { s.rook.Outage(true) }, "cannot read Rook", "Rook"},
		"no permission":     {func(s *whole) { s.rook.Forbid(readsOfRook[0]) }, readsOfRook[0], "Rook"},
		"no Deployments":    {func(s *whole) { s.rook.Forbid(readsOfRook[1]) }, readsOfRook[1], "Rook"},
		"etcd":              {func(s *whole) { s.etcd.Cut(true) }, "cannot read the control plane", "etcd"},
		"the list is kept":  {func(s *whole) { s.rook.ListNode("w8"); s.userManaged = true }, "installer's", ""},
	} {
		t.Run(place, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.silence(s)
				traced := s.trace("w8")
				if len(traced.Found) != 0 || len(traced.Doubts) != 1 || !strings.Contains(traced.Doubts[0], test.want) {
					t.Errorf("traced %+v, want a doubt of %q", traced, test.want)
				}
				if slices.Contains(traced.Places, test.notLooked) {
					t.Errorf("looked in %q", traced.Places)
				}
			})
		})
	}
}

// askUnseen asks for w1 as for a node that EKCO never saw: its Node is gone.
func (s *whole) askUnseen() {
	s.Cluster.RemoveNode("w1")
	s.Request(journal.NodeSubject("w1", journal.TracedUID("w1")), journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true})
}

func TestANodeThatEKCONeverSawIsPurgedByWhatIsLeftOfIt(t *testing.T) {
	for _, shape := range []string{"before 1.22", "since 1.22"} {
		t.Run("Kubernetes "+shape, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				if shape == "since 1.22" {
					s.since122("w1", "p2", "p3")
				}
				s.watched().askUnseen()
				s.RunToEnd(s.cfg())
				s.wantTraces()
				s.wantOthers()
				if s.LastLine() != "ended done" || s.Count("warned NodeWasSeen: EKCO never saw node w1") != 1 {
					t.Errorf("the story is %q", s.Story())
				}
				if got := s.Cluster.Count("delete-node w1"); got != 0 {
					t.Errorf("%d deletions of a Node were asked for", got)
				}
			})
		})
	}
}

func TestThePlanForAnUnseenNodeSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.askUnseen()
		plan, checks, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		if first := plan.Steps[0]; first.ID != "check" || !slices.Contains(first.Preflights, purge.NodeWasSeen) {
			t.Errorf("the first step is %+v", first)
		}
		at := slices.IndexFunc(checks, func(c actions.Check) bool { return c.Preflight == purge.NodeWasSeen })
		if at < 0 || checks[at].Verdict.Kind != actions.VerdictWarn {
			t.Fatalf("the checks are %+v", checks)
		}
		for _, want := range []string{"CRUSH host w1 with osd.3, osd.12, osd.107", "an entry in the CephCluster", "etcd member w1", "endpoint"} {
			if !strings.Contains(checks[at].Verdict.Reason, want) {
				t.Errorf("%q does not say %q", checks[at].Verdict.Reason, want)
			}
		}
		if !strings.Contains(read(t, purgeDetails), "| `"+purge.NodeWasSeen+"`") {
			t.Error("the docs do not know the preflight")
		}
	})
}

func TestAnUnseenNodeThatJoinsBeforeAnythingIsDestroyedEndsThePurge(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.askUnseen()
		s.Cluster.AddNode("w1", journal.RolePrimary)
		s.RunToEnd(s.cfg())
		s.wantAll()
		if last := s.LastLine(); !strings.HasPrefix(last, "ended abandoned a node w1 has joined") {
			t.Errorf("the action %s", last)
		}
	})
}

func TestWhatAnUnseenNodeHasInCephWaitsForCephAndIsFoundThen(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.ceph.Outage(true)
		s.askUnseen()
		r := s.Start(s.cfg())
		s.Pass(48 * time.Hour)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		if s.Count("warned NodeWasSeen") != 1 || !strings.Contains(strings.Join(s.Story(), "\n"), "cannot read Ceph") {
			t.Errorf("the story is %q", s.Story())
		}
		s.ceph.Outage(false)
		if err := r.Wait(); err != nil {
			t.Fatal(err)
		}
		s.wantTraces()
		s.wantOthers()
	})
}

// joinsLate purges an unseen node; before its member is removed, a Node joins
// under its name.
func (s *whole) joinsLate(join func()) {
	s.rook.AfterEffect = func(effect string) {
		if effect == "remove-storage-node w1" {
			s.etcd.Cut(true)
		}
	}
	s.askUnseen()
	r := s.Start(s.cfg())
	s.Pass(time.Hour)
	s.Cluster.AddNode("w1", journal.RolePrimary)
	join()
	s.etcd.Cut(false)
	if err := r.Wait(); err != nil {
		s.T.Fatal(err)
	}
}

func TestTheMemberOfAnUnseenNodeStaysIfItMayBeThatOfANodeThatJoined(t *testing.T) {
	for name, another := range map[string]bool{"the only member of the name": false, "another member has the name": true} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				var fresh etcd.Member
				s.joinsLate(func() {
					if another {
						fresh = s.etcd.Add("w1", "10.9.0.77")
					}
				})
				has := func(id etcd.ID) bool {
					return slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == id })
				}
				if has(s.member.ID) == another {
					t.Errorf("the captured member is there: %v; %q", has(s.member.ID), s.Story())
				}
				if another && !has(fresh.ID) {
					t.Error("the member of the node that joined was removed")
				}
				if config, _ := s.Cluster.KubeadmConfig(s.T.Context()); !strings.Contains(config.ClusterStatus, "w1:") {
					t.Error("the endpoint of the node that joined was removed")
				}
			})
		})
	}
}
