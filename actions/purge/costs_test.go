package purge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// sluggish answers deletions of Nodes after a time.
type sluggish struct {
	kube.API
	after time.Duration
}

func (s sluggish) DeleteNode(ctx context.Context, name, uid string) error {
	select {
	case <-time.After(s.after):
		return s.API.DeleteNode(ctx, name, uid)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusing refuses them.
type refusing struct {
	kube.API
	err error
}

func (r refusing) DeleteNode(context.Context, string, string) error { return r.err }

// resident says what runs on w1.
type resident struct {
	pods                []kube.Resident
	volumes             []kube.LocalVolume
	podsErr, volumesErr error
}

func (r resident) Residents(_ context.Context, node string) ([]kube.Resident, error) {
	if node != "w1" {
		return nil, fmt.Errorf("asked about %s", node)
	}
	return r.pods, r.podsErr
}

func (r resident) LocalVolumes(_ context.Context, hostname string) ([]kube.LocalVolume, error) {
	if hostname != "w1" {
		return nil, fmt.Errorf("asked about %s", hostname)
	}
	return r.volumes, r.volumesErr
}

func pod(name, controller string, claims ...string) kube.Resident {
	return kube.Resident{Namespace: "default", Name: name, Controller: kube.Controller{Kind: controller}, Claims: claims}
}

// costs returns what the purge of w1 is said to cost.
func (s *whole) costs(on resident) []string {
	s.T.Helper()
	s.options = func(f *actionstest.Fuse) []purge.Option {
		return append(s.purgeOptions(f), purge.WithResidents(on))
	}
	s.ask(journal.ActionRequested{Manual: true})
	runner, record := actions.NewRunner(s.cfg()), s.Record()
	plan, _, err := runner.Explain(s.T.Context(), record)
	if err != nil {
		s.T.Fatal(err)
	}
	record.Plan, record.Planned = plan, true
	return runner.Costs(s.T.Context(), record)
}

var inhabited = resident{
	pods: []kube.Resident{
		pod("web-1", "ReplicaSet"), pod("web-0", "ReplicaSet", "shared"), pod("db-0", "StatefulSet", "data-db-0"),
		{Namespace: "default", Name: "web-2", Controller: kube.Controller{Kind: "ReplicaSet"}, Terminating: true},
		pod("agent-x", "DaemonSet"), pod("kube-proxy-y", "DaemonSet"), pod("etcd-w1", "Node"), pod("shell", ""),
	},
	volumes: []kube.LocalVolume{{Name: "pv-1", Claim: "default/data-db-0"}, {Name: "pv-2"}, {Name: "pv-3", Claim: "other/data-db-0"}},
}

func TestADryRunSaysWhatIsLost(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 2)
		s.ceph.AddPool("small", 2, 1)
		want := []string{
			"osd.3, osd.12, osd.107 with their copies of the data (3.0 TiB by their weight in the CRUSH map)",
			"pool replicapool keeps 2 of its 3 copies: 2 hosts with OSDs are left",
			"2 pods move to other nodes: default/web-0, default/web-1",
			"lost: 1 pod that no controller recreates: default/shell",
			"1 pod terminates already: default/web-2",
			"3 pods end with the node (static, or of a DaemonSet)",
			"lost: local volume pv-1 with its data (claim default/data-db-0); pods that cannot start without it: default/db-0",
			"lost: local volume pv-2 with its data",
			"lost: local volume pv-3 with its data (claim other/data-db-0)",
			"2 primaries are left, 2 of them ready",
			"2 members of etcd are left, of which 0 can fail",
		}
		if diff := cmp.Diff(want, s.costs(inhabited)); diff != "" {
			t.Error(diff)
		}
		if effects := s.Cluster.Effects(); len(effects) > 0 {
			t.Errorf("asking had effects: %v", effects)
		}
	})
}

func TestWhatADryRunCannotTellItSays(t *testing.T) {
	for name, test := range map[string]struct {
		on   resident
		want string
	}{
		"the pods":    {resident{podsErr: errors.New("no answer")}, "unknown: which pods are on it: no answer"},
		"the volumes": {resident{volumesErr: errors.New("no answer")}, "unknown: which volumes are only on it: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				if got := strings.Join(s.costs(test.on), "\n"); !strings.Contains(got, test.want) {
					t.Errorf("it says\n%s", got)
				}
			})
		})
	}
}

func TestNamesBeyondTheFirstTenAreCounted(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		var on resident
		for i := range 12 {
			on.pods = append(on.pods, pod(fmt.Sprintf("web-%02d", i), "ReplicaSet"))
		}
		got := strings.Join(s.costs(on), "\n")
		if !strings.Contains(got, "12 pods move to other nodes: default/web-00, ") || !strings.Contains(got, "default/web-09 and 2 more") {
			t.Errorf("it says\n%s", got)
		}
	})
}

func TestAPurgeOfANodeThatIsGoneCostsNoPods(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.RemoveNode("w1")
		if got := strings.Join(s.costs(inhabited), "\n"); strings.Contains(got, "pod moves") || got == "" {
			t.Errorf("it says\n%s", got)
		}
	})
}
