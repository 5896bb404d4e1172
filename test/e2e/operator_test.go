package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/artifacts"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// fastConfig scales EKCO's durations from minutes to seconds.
func fastConfig() map[string]string {
	return map[string]string{
		"node_unreachable_toleration": "4s",
		"clear_after":                 "1s",
		"pod_termination_grace":       "1s",
		"settling_time":               "1s",
		"purge_cooldown":              "1s",
		"reconcile_interval":          "1s",
		"min_ready_master_nodes":      "2",
		"min_ready_worker_nodes":      "0",
		"clear_dead_nodes":            "true",
		// No program runs on simulated nodes, so that none can look at certificates there.
		"rotate_certs": "false",
	}
}

// operator is an installation of EKCO: a journal, a config and an identity,
// under which the binary can be started again and again.
type operator struct {
	t          *testing.T
	journal    string
	config     string
	kubeconfig string
	address    string
	running    *child.Process
	// isExplained is set when explain has run.
	isExplained bool
}

// newOperator makes an installation with the fast config and the given keys.
func newOperator(t *testing.T, kubeconfig string, keys map[string]string) *operator {
	t.Helper()
	config := fastConfig()
	maps.Copy(config, keys)
	var content strings.Builder
	for key, value := range config {
		fmt.Fprintf(&content, "%s: %s\n", key, value)
	}
	dir := t.TempDir()
	o := &operator{
		t: t, kubeconfig: kubeconfig, address: freeAddress(t),
		journal: filepath.Join(dir, "journal.db"), config: filepath.Join(dir, "config.yaml"),
	}
	if err := os.WriteFile(o.config, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// install starts a cluster, with an installation of EKCO that has the shipped
// permissions.
func install(t *testing.T, keys map[string]string) (*cluster, *operator) {
	t.Helper()
	c := startCluster(t)
	c.applyShippedRBAC()
	return c, newOperator(t, c.kubeconfigFor("kurl/ekco", nil), keys)
}

// installGated is install with a gate between EKCO and the API server.
func installGated(t *testing.T, keys map[string]string) (*cluster, *gate, *operator) {
	t.Helper()
	c := startCluster(t)
	c.applyShippedRBAC()
	g := newGate(t, c.config)
	return c, g, newOperator(t, c.kubeconfigFor("kurl/ekco", g), keys)
}

// freeAddress returns an address that nobody else listens on. Its port is below
// those that outgoing connections get, so that none of them can take it before
// EKCO starts, or between two starts.
func freeAddress(t *testing.T) string {
	t.Helper()
	const port = 19080
	for range 100 {
		address := fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(60), rand.IntN(256), 1+rand.IntN(254), port)
		if child.Free(t.Context(), address) == nil {
			return address
		}
	}
	t.Fatalf("no free address with port %d", port)
	return ""
}

func (o *operator) start(args ...string) *child.Process {
	o.t.Helper()
	return o.startAs(binaries.ekco, args...)
}

// startAs starts EKCO from the file of that name.
func (o *operator) startAs(name string, args ...string) *child.Process {
	o.t.Helper()
	all := append([]string{
		"operator", "--kubeconfig", o.kubeconfig, "--journal", o.journal,
		"--config", o.config, "--listen_address", o.address, "--log_level", "debug",
	}, args...)
	o.running = child.StartWith(o.t, []string{o.machine()}, name, all...)
	tellsWhatItDoes(o.t, o.running)
	o.t.Cleanup(func() {
		if o.t.Failed() && !o.isExplained {
			o.isExplained = true
			o.explain()
		}
	})
	return o.running
}

// machine returns the environment variable with the name of EKCO's machine. Each directory with a journal is one.
func (o *operator) machine() string { return "NODE_NAME=" + filepath.Dir(o.journal) }

// explain keeps the status and the journal for a test that has failed.
func (o *operator) explain() {
	o.t.Helper()
	for name, args := range map[string][]string{
		"ekco status":  {"status", "-o", "wide"},
		"ekco journal": {"history", "--since", "all", "-o", "json"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), await.HangTimeout)
		defer cancel()
		command := exec.CommandContext(ctx, binaries.ekco, append(args, "--journal", o.journal, "--config", o.config)...)
		output, err := command.CombinedOutput() // status exits with 1 if something is wrong
		if command.ProcessState == nil {
			output = []byte(err.Error())
		}
		artifacts.Keep(o.t, name, output)
	}
}

// hasJournal reports whether EKCO has opened its journal. A command that is run before may lock
// the journal, and EKCO ends.
func (o *operator) hasJournal() bool {
	return strings.Contains(o.running.Output.String(), `"msg":"EKCO runs"`)
}

// startReady starts EKCO and waits until it has caught up with the cluster.
func (o *operator) startReady(args ...string) *child.Process {
	o.t.Helper()
	p := o.start(args...)
	o.waitReady()
	return p
}

func (o *operator) waitReady() {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, "EKCO is ready", func() (bool, string) {
		return get("http://" + o.address + "/readyz")
	})
}

// get reports whether a URL answers 200, and what it answers.
func get(url string) (bool, string) {
	client := http.Client{Timeout: time.Minute}
	response, err := client.Get(url)
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && response.StatusCode == http.StatusOK, string(body)
}

// metric returns the value of a series, named with its labels, -1 when there is
// none.
func (o *operator) metric(name string) float64 {
	o.t.Helper()
	_, body := get("http://" + o.address + "/metrics")
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				o.t.Fatalf("metric %s: %v", name, err)
			}
			return value
		}
	}
	return -1
}

// ekco runs a command against this installation and returns its output and
// exit code.
func (o *operator) ekco(args ...string) (string, int) {
	o.t.Helper()
	p := child.Start(o.t, binaries.ekco, append(args, "--journal", o.journal, "--config", o.config)...)
	code := p.Wait(await.HangTimeout)
	return p.Output.String(), code
}

// mustEkco fails the test unless the command exits 0.
func (o *operator) mustEkco(args ...string) string {
	o.t.Helper()
	output, code := o.ekco(args...)
	if code != 0 {
		o.t.Fatalf("ekco %s: exit %d\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// state returns the state of the youngest machine of that name.
func (o *operator) state(node string) journal.NodeState {
	o.t.Helper()
	state, since := journal.NodeState(""), time.Time{}
	for _, n := range o.status().Nodes {
		if n.Name == node && !n.Since.Before(since) {
			state, since = n.State, n.Since
		}
	}
	return state
}

func (o *operator) waitState(node string, want journal.NodeState) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, fmt.Sprintf("%s is %s", node, want), func() (bool, string) {
		state := o.state(node)
		return state == want, string(state)
	})
}

// events returns what "ekco history" with these flags shows. It asks the operator's socket if it can, as status does.
func (o *operator) events(args ...string) []journal.Event {
	o.t.Helper()
	if events, err := o.askEvents(args...); err == nil {
		return events
	}
	all := append([]string{"history", "-o", "json", "--since", "24h", "--journal", o.journal, "--config", o.config}, args...)
	output, err := exec.Command(binaries.ekco, all...).Output()
	if err != nil {
		o.t.Fatalf("ekco history: %v\n%s", err, output)
	}
	var events []journal.Event
	for line := range strings.Lines(string(output)) {
		var event journal.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			o.t.Fatalf("ekco history -o json: %v\n%s", err, line)
		}
		events = append(events, event)
	}
	return events
}

// outcomes returns how the actions on a node ended, by kind.
func (o *operator) outcomes(node string) map[journal.ActionKind][]journal.Outcome {
	o.t.Helper()
	kinds := make(map[string]journal.ActionKind)
	outcomes := make(map[journal.ActionKind][]journal.Outcome)
	for _, event := range o.events("--node", node) {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			kinds[event.Action] = p.Kind
		case *journal.ActionAdopted:
			kinds[event.Action] = p.Record.Kind
		case *journal.ActionEnded:
			kind := kinds[event.Action]
			outcomes[kind] = append(outcomes[kind], p.Outcome)
		}
	}
	return outcomes
}

// checkRecorded fails the test when an effect happened without a record of the
// intent before it.
func (o *operator) checkRecorded(node string) {
	o.t.Helper()
	started := make(map[string]bool)
	for _, event := range o.events("--node", node) {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.StepStarted:
			started[event.Action+"/"+p.Step] = true
		case *journal.StepDone:
			if !p.AlreadyDone && !started[event.Action+"/"+p.Step] {
				o.t.Errorf("event %d: step %s of %s is done and was never started", event.Seq, p.Step, event.Action)
			}
		}
	}
}

// waitRefusal waits until status shows that a rule keeps EKCO from such an
// action, and returns what it shows.
func (o *operator) waitRefusal(kind journal.ActionKind, rule string) fsm.Refusal {
	o.t.Helper()
	var found fsm.Refusal
	eventually(o.t, await.HangTimeout, fmt.Sprintf("%s refuses %s", rule, kind), func() (bool, string) {
		refusals := o.status().Refusals
		for _, refusal := range refusals {
			if refusal.Kind == kind && refusal.Rule == rule {
				found = refusal
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", refusals)
	})
	return found
}
