package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/test/await"
)

func TestAnEKCOWhoseVerifierIsKilledObservesLeavesTheJournalAloneAndGoesOn(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	o.running.Stop(await.HangTimeout)
	before, err := os.ReadFile(o.journal)
	if err != nil {
		t.Fatal(err)
	}

	spare := o.startBereft()
	eventually(t, await.HangTimeout, "EKCO says that the journal is not open", func() (bool, string) {
		ready, answer := get("http://" + o.address + "/readyz")
		return !ready && strings.Contains(answer, "signal: killed"), answer
	})
	if ok, answer := get("http://" + o.address + "/healthz"); !ok {
		t.Errorf("EKCO is not healthy: %s", answer)
	}
	c.runPods("worker-1", "stuck")
	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Unknown)
	if text := o.mustEkco("status"); !strings.Contains(text, "NOT OPEN") || !strings.Contains(text, "signal: killed") {
		t.Errorf("status says\n%s", text)
	}
	if output, code := o.ekco("purge-node", "worker-1", "--yes"); code != 1 || !strings.Contains(output, "EKCO only observes") {
		t.Errorf("a purge: exit %d\n%s", code, output)
	}
	if output, code := o.ekco("journal", "verify"); code != 0 {
		t.Errorf("the sound file is found damaged:\n%s", output)
	}
	first := o.status().Journal.Unopened.NextTry
	eventually(t, await.HangTimeout, "it is tried again", func() (bool, string) {
		u := o.status().Journal.Unopened
		return u != nil && u.NextTry.After(first), fmt.Sprint(u)
	})
	after, err := os.ReadFile(o.journal)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the journal was touched (%v)", err)
	}
	if names, err := filepath.Glob(o.journal + ".*"); err != nil || len(names) != 1 {
		t.Errorf("next to the journal are %v (%v), want its lock alone", names, err)
	}
	if !c.podExists("stuck") {
		t.Error("EKCO acted without a journal")
	}
	if !o.running.Running() {
		t.Fatal("EKCO has ended")
	}

	spare()
	o.waitReady()
	o.waitState("worker-1", fsmnode.Cleared)
	if c.podExists("stuck") {
		t.Error("with its journal EKCO did not free the pod")
	}
	o.mustEkco("journal", "verify")
}

// startBereft starts EKCO so that every process with which it verifies its journal
// is killed, until spare is called. It runs a file whose name, by which EKCO starts
// such a process, is a script's by then.
func (o *operator) startBereft() (spare func()) {
	o.t.Helper()
	dir := o.t.TempDir()
	name := filepath.Join(dir, "ekco")
	if err := os.Link(binaries.ekco, name); err != nil {
		o.t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		o.t.Fatal(err)
	}
	defer file.Close()
	replace := func(make func(path string) error) {
		o.t.Helper()
		fresh := filepath.Join(dir, "fresh")
		if err := errors.Join(make(fresh), os.Rename(fresh, name)); err != nil {
			o.t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$2\" = verify ] && kill -KILL $$\nexec %s \"$@\"\n", binaries.ekco)
	replace(func(path string) error { return os.WriteFile(path, []byte(script), 0o700) })
	o.startAs(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()))
	return func() { replace(func(path string) error { return os.Link(binaries.ekco, path) }) }
}
