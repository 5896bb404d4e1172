package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/child"
)

// installation is a journal, a config and an identity under which EKCO can be
// started again and again.
type installation struct {
	ekco, journal, config, kubeconfig, address string
}

// install makes an installation. What the keys do not say is as kURL has it.
func install(b *testing.B, kubeconfig string, keys map[string]string) *installation {
	b.Helper()
	all := map[string]string{
		"node_unreachable_toleration": "1h",
		"purge_dead_nodes":            "false",
		"clear_dead_nodes":            "true",
	}
	maps.Copy(all, keys)
	var content strings.Builder
	for key, value := range all {
		fmt.Fprintf(&content, "%s: %s\n", key, value)
	}
	dir := b.TempDir()
	o := &installation{
		ekco: ekcoBinary(b), kubeconfig: kubeconfig, address: freeAddress(b),
		journal: filepath.Join(dir, "journal.db"), config: filepath.Join(dir, "config.yaml"),
	}
	if err := os.WriteFile(o.config, []byte(content.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return o
}

func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start starts the operator.
func (o *installation) start(b *testing.B, args ...string) *child.Process {
	b.Helper()
	return child.Start(b, o.ekco, append([]string{
		"operator", "--kubeconfig", o.kubeconfig,
		"--journal", o.journal, "--config", o.config, "--listen_address", o.address,
	}, args...)...)
}

// startReady starts the operator and waits until it has caught up with the
// cluster.
func (o *installation) startReady(b *testing.B, args ...string) *child.Process {
	b.Helper()
	p := o.start(b, args...)
	o.waitReady(b, p, time.Minute)
	return p
}

// waitReady waits for a 200 of /readyz.
func (o *installation) waitReady(b *testing.B, p *child.Process, limit time.Duration) {
	b.Helper()
	eventually(b, limit, "EKCO is ready", func() bool {
		if !p.Running() {
			b.Fatal("the operator ended")
		}
		response, err := o.get(b.Context(), "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func (o *installation) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// events returns the events of a type, as "ekco history" shows them.
func (o *installation) events(b *testing.B, kind journal.Type) []journal.Event {
	b.Helper()
	output := run(b, o.ekco, "history", "--journal", o.journal, "--config", o.config,
		"--since", "all", "--type", string(kind), "-o", "json")
	var events []journal.Event
	for line := range strings.Lines(output) {
		var event journal.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			b.Fatalf("read %q: %v", line, err)
		}
		events = append(events, event)
	}
	return events
}

// saysIfFailed logs at the end what EKCO says of Rook's storage if the benchmark has failed.
func (o *installation) saysIfFailed(b *testing.B) {
	b.Helper()
	b.Cleanup(func() {
		if !b.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		said, err := exec.CommandContext(ctx, o.ekco, "status", "--component", "rook", "-o", "wide", "--journal", o.journal).CombinedOutput()
		b.Logf("%v\n%s", err, said)
	})
}
