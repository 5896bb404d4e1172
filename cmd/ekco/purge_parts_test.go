package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
)

func TestACallIsLoggedWithItsErrorOnlyIfItHasOne(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	calls := timeCalls(api.NewMetrics(), log)
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, `msg="asked ceph" call="osd tree" took=2s` + "\n"},
		{errors.New("no"), `msg="asked ceph" call="osd tree" took=2s error=no` + "\n"},
	} {
		logged.Reset()
		calls.ceph("osd tree", 2*time.Second, test.err)
		if !strings.HasSuffix(logged.String(), test.want) {
			t.Errorf("logged %q, want %q", logged.String(), test.want)
		}
	}
}

const kubeconfigOfNobody = `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
  "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
  "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}]}`

func TestInADryRunNoClientOfTheOutsideChangesAnything(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(kubeconfigOfNobody), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		configured bool
		options    ringOptions
		readOnly   bool
	}{
		{false, ringOptions{}, false},
		{false, ringOptions{OneShot: true, Node: "w1"}, false},
		{true, ringOptions{}, true},
		{true, ringOptions{OneShot: true, Node: "w1"}, true},
		{false, ringOptions{OneShot: true, Node: "w1", DryRun: true}, true},
	} {
		t.Run(fmt.Sprintf("%v %+v", test.configured, test.options), func(t *testing.T) {
			cfg := config.Config{General: config.General{Kubeconfig: kubeconfig, DryRun: test.configured}}
			for name, err := range changes(t, cfg, test.options) {
				refused := errors.Is(err, kube.ErrReadOnly) || errors.Is(err, ceph.ErrReadOnly) || errors.Is(err, etcd.ErrReadOnly)
				if err == nil || refused != test.readOnly {
					t.Errorf("%s: %v, want that it is refused: %v", name, err, test.readOnly)
				}
			}
		})
	}
}

// changes asks each client for a change, and returns the errors.
func changes(t *testing.T, cfg config.Config, options ringOptions) map[string]error {
	t.Helper()
	reached, err := options.reach(cfg, api.NewMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	member, err := reached.outside.etcd([]string{"https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]error{
		"kube": reached.kube.DeleteNode(t.Context(), "w1", "u"),
		"rook": reached.outside.rook.DeleteDeployment(t.Context(), "rook-ceph-osd-1", "u"),
		"ceph": reached.outside.ceph.Out(t.Context(), 1),
		"etcd": member.RemoveMember(t.Context(), 1),
	}
}
