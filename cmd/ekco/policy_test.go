package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	fsmenvoy "github.com/replicatedhq/ekco/fsm/envoy"
	fsmkotsadm "github.com/replicatedhq/ekco/fsm/kotsadm"
	fsmbalancer "github.com/replicatedhq/ekco/fsm/loadbalancer"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	fsmrookpods "github.com/replicatedhq/ekco/fsm/rookpods"
	"github.com/replicatedhq/ekco/internal/config"
)

func TestWithoutAConfigurationTheDefaultPolicyHolds(t *testing.T) {
	want := fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(fsmenvoy.Machine, fsmenvoy.Policy{Restart: true, After: 5 * time.Minute}).
		With(fsmcertificates.Machine, fsmcertificates.Policy{Renew: true, Every: 24 * time.Hour, TTL: 30 * 24 * time.Hour}).
		With(fsmkotsadm.Machine, fsmkotsadm.Policy{}).
		With(fsmbalancer.Machine, balancerPolicy(config.Default())).
		With(fsmminio.Machine, fsmminio.Policy{Off: "enable_ha_minio is off", VolumeWait: 5 * time.Minute, Migrates: true}).
		With(fsmcsr.Name, fsmcsr.Policy{}).
		With(fsmrook.Machine, fsmrook.Policy{Off: "maintain_rook_storage_nodes is off", MinCopies: 1, MaxCopies: 3, Pools: rookPools(config.Default())}).
		With(fsmrookpods.Machine, fsmrookpods.Policy{
			CSIOff: "reconcile_ceph_csi_resources is off", MDSOff: "reconcile_rook_mds_placement is off", Class: "node-critical",
		})
	if diff := cmp.Diff(want, wholePolicy(config.Default())); diff != "" {
		t.Error(diff)
	}
}

func TestShortPollIntervalShortensHolds(t *testing.T) {
	cfg := config.Default()
	for interval, want := range map[time.Duration]actions.RetryPolicy{
		cfg.ReconcileInterval: {HoldInitial: actions.DefaultHoldInitial, HoldMax: actions.DefaultHoldMax},
		time.Second:           {HoldInitial: time.Second, HoldMax: 6 * time.Second},
	} {
		cfg.ReconcileInterval = interval
		if got := retryPolicy(cfg); got != want {
			t.Errorf("with %s: %+v, want %+v", interval, got, want)
		}
	}
}

func TestTheSettingsOfTheLoadBalancerReachItsPolicy(t *testing.T) {
	cfg := config.Default()
	cfg.EnableInternalLoadBalancer, cfg.InternalLoadBalancerHAProxyImage = true, "haproxy:3"
	if p := balancerPolicy(cfg); !p.Enabled || p.Image != "haproxy:3" || p.Version != "0" || p.Layout == "" {
		t.Errorf("%+v", p)
	}
}

func wholePolicy(cfg config.Config) fsm.Policy {
	return capabilities(cluster{cfg: cfg}).Policy(policyOf(cfg))
}

func TestMaxUnknownNodesIsReadAndRoundedUp(t *testing.T) {
	read := func(text string) (config.Config, error) {
		return config.Load(config.Sources{Dirs: []string{t.TempDir()}, Env: func(name string) (string, bool) {
			return text, name == "MAX_UNKNOWN_NODES"
		}})
	}
	for text, limits := range map[string]map[int]int{
		"55%":  {0: 0, 1: 1, 2: 2, 3: 2, 10: 6, 1000: 550},
		"100%": {7: 7},
		"0%":   {7: 0},
		"3":    {1: 3, 1000: 3},
	} {
		cfg, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		limit := wholePolicy(cfg).Of[fsmnode.Machine].(*fsmnode.Policy).MaxUnknown
		if limit.String() != text || cfg.MaxUnknownNodes.String() != text {
			t.Errorf("%q is written as %q and %q", text, limit, cfg.MaxUnknownNodes)
		}
		for total, want := range limits {
			if got := limit.Limit(total); got != want {
				t.Errorf("%s of %d nodes: got %d, want %d", text, total, got, want)
			}
		}
	}
	for _, text := range []string{"%", "101%", "-1", "1.5", "many", "3 nodes"} {
		if got, err := read(text); err == nil {
			t.Errorf("%q is read as %v", text, got.MaxUnknownNodes)
		}
	}
}

func TestTheSettingsOfRooksStorageReachItsPolicy(t *testing.T) {
	cfg := config.Default()
	cfg.MaintainRookStorageNodes, cfg.RookStorageNodes, cfg.RookStorageNodesLabel = true, "- name: a", "store=yes"
	cfg.MinCephPoolReplication, cfg.MaxCephPoolReplication = 2, 4
	want := fsmrook.Policy{UserManaged: true, Label: "store", Value: "yes", MinCopies: 2, MaxCopies: 4, Pools: rookPools(cfg)}
	if diff := cmp.Diff(want, rookPolicy(cfg)); diff != "" {
		t.Error(diff)
	}
	var names []string
	cfg.CephFilesystem = ""
	for _, of := range rookPools(cfg) {
		names = append(names, of.Kind+" "+of.Name)
	}
	if diff := cmp.Diff([]string{"CephBlockPool rook-ceph/replicapool", "CephObjectStore rook-ceph/replicated"}, names); diff != "" {
		t.Error(diff)
	}
}
