package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/test/await"
)

// unreachableAPI returns a kubeconfig for an API server that does not run.
func unreachableAPI(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}], contexts: [{name: x, context: {cluster: c, user: u}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestADryRunWithAWrongJournalIsRefusedLikeAPurge(t *testing.T) {
	d := newDesk(t, nil)
	d.app.work = startRing
	for _, args := range [][]string{{"--yes"}, {"--dry-run"}} {
		code := d.types(append([]string{"purge-node", "worker-2", "--kubeconfig", unreachableAPI(t)}, args...)...)
		d.expect(code, exitFailed, "", "--without-operator")
		if created, err := os.ReadDir(d.dir); err != nil || len(created) > 0 {
			t.Errorf("%v created %v (%v)", args, created, err)
		}
	}
}

// startsOperator runs a real operator on the desk's journal until the function
// it returns is called, which returns its log.
func (d *desk) startsOperator(args ...string) (stop func() string) {
	d.t.Helper()
	own := newDesk(d.t, nil)
	own.env = d.env
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- own.typesUntil(ctx, append([]string{"operator", "--listen_address", "127.0.0.1:0"}, args...)...)
	}()
	d.app.dial = dialOperator
	deadline := time.Now().Add(await.HangTimeout)
	for {
		client, err := d.app.dial(d.t.Context(), config.SocketOf(d.env["JOURNAL"]), "")
		if err == nil {
			client.Close()
			break
		}
		if time.Now().After(deadline) || len(ended) > 0 {
			cancel()
			d.t.Fatalf("no operator answers: %v; exit code %d\n%s", err, <-ended, own.errOut)
		}
		<-time.After(20 * time.Millisecond)
	}
	var log string
	stopped := false
	stop = func() string {
		if !stopped {
			stopped = true
			cancel()
			if code := <-ended; code != exitDone {
				d.t.Errorf("the operator ended with exit code %d:\n%s", code, own.errOut)
			}
			log = own.errOut.String()
		}
		return log
	}
	d.t.Cleanup(func() { stop() })
	return stop
}

// comesToSay types a command until its output has what is wanted: what a running
// operator has found out, and when, is its own affair.
func (d *desk) comesToSay(want string, args ...string) {
	d.t.Helper()
	await.Until(d.t, await.HangTimeout, strings.Join(args, " ")+" says "+want, func() (bool, string) {
		d.types(args...)
		return strings.Contains(d.out.String(), want), d.out.String()
	})
}

func TestWhatIsSwitchedOnAndNotDoneIsSaidOnceAtTheStartAndInTheStatus(t *testing.T) {
	d := newDesk(t, nil)
	stop := d.startsOperator("--kubeconfig", unreachableAPI(t), "--restart_failed_envoy_pods=false", "--rook_minimum_node_count=3")
	const said = "this version cannot yet create a Ceph cluster (rook_minimum_node_count)"
	d.expect(d.types("status"), exitDone, "LIMITATIONS\n  "+said, "")
	log := stop()
	warned := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, "cannot yet") {
			warned++
			if !strings.Contains(line, `"WARN"`) || !strings.Contains(line, said) {
				t.Errorf("says %s", line)
			}
		}
	}
	if warned != 1 {
		t.Errorf("warned %d times:\n%s", warned, log)
	}
}

func TestTheStatusOfAnOperatorStartedWhileTheAPIIsDownSaysSo(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	stop := d.startsOperator("--kubeconfig", unreachableAPI(t))
	d.comesToSay("\nAPI:      has not answered since ", "status")
	for _, want := range []string{
		fmt.Sprintf("(pid %d), up ", os.Getpid()),
		"connection refused",
		"EKCO has not seen the cluster since it started, and does nothing until the API answers.",
		" ago):\nNODE", "worker-2",
	} {
		d.expect(d.types("status", "-o", "wide"), exitDone, want, "")
	}
	d.expect(d.types("status", "-o", "json"), exitDone, `"starting": {`, "")
	stop()
	d.expect(d.types("status"), exitDone, "The nodes as EKCO saw them last, at ", "")
	d.expect(d.types("status"), exitDone, "v0.29.0 on h, started ", "")
}
