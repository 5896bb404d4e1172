package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

func TestADamagedJournalMeansSafeModeUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	o.running.Stop(await.HangTimeout)
	damage(t, o.journal)

	if output, code := o.ekco("journal", "verify"); code == 0 {
		t.Fatalf("verify finds a damaged journal sound:\n%s", output)
	}
	c.runPods("worker-1", "stuck")
	o.startReady()
	if o.status().Journal.SafeMode == nil {
		t.Fatal("EKCO is not in safe mode")
	}
	if matches, err := filepath.Glob(o.journal + ".damaged-*"); err != nil || len(matches) != 1 {
		t.Errorf("the damaged file was not set aside: %v %v", matches, err)
	}
	c.node("lose", "worker-1")
	o.waitRefusal(journal.ActionClearNode, fsm.RuleSafeMode)
	if output, code := o.ekco("purge-node", "worker-1"); code == 0 || !strings.Contains(output, "journal accept") {
		t.Errorf("a purge in safe mode: exit %d, want not 0 and what to do:\n%s", code, output)
	}
	o.mustEkco("journal", "accept")
	o.waitState("worker-1", fsmnode.Cleared)
	if c.podExists("stuck") {
		t.Error("after accept the pod is still stuck")
	}
	o.mustEkco("journal", "verify")
}

// damage flips a bit in the middle of every event that the file holds.
func damage(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	word := []byte(`"node.observed"`)
	flipped := 0
	for at := 0; ; {
		next := bytes.Index(content[at:], word)
		if next < 0 {
			break
		}
		at += next + len(word)
		content[at-3] ^= 1
		flipped++
	}
	if flipped == 0 {
		t.Fatal("the journal holds nothing to damage")
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskStopsEKCOFromActingUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	o.journal = filepath.Join(disk, "ekco", "journal.db")
	o.startReady()
	t.Cleanup(func() { o.running.Kill() })
	c.runPods("worker-1", "stuck")

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	c.node("lose", "worker-1")
	eventually(t, await.HangTimeout, "EKCO says that it cannot write", func() (bool, string) {
		ready, answer := get("http://" + o.address + "/readyz")
		return !ready && strings.Contains(answer, "journal"), answer
	})
	if ok, _ := get("http://" + o.address + "/healthz"); !ok {
		t.Error("a full disk must not get EKCO restarted: /healthz fails")
	}
	eventually(t, await.HangTimeout, "EKCO has tried to write again and again", func() (bool, string) {
		failures := o.metric("ekco_journal_append_failures_total")
		return failures >= 4, fmt.Sprint(failures)
	})
	for _, command := range []string{"status", "history"} {
		eventually(t, await.HangTimeout, "ekco "+command+" says so, since when and why", func() (bool, string) {
			output, _ := o.ekco(command)
			return strings.Contains(output, "the journal cannot be written, since ") && strings.Contains(output, "no space left on device"), output
		})
	}
	if !c.podExists("stuck") {
		t.Fatal("EKCO acted without a record")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	o.waitState("worker-1", fsmnode.Cleared)
	if c.podExists("stuck") {
		t.Error("with space again the pod is still stuck")
	}
	o.checkRecorded("worker-1")
}

func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.Copy(file, zeros{}); err == nil {
		t.Fatal("the small disk does not get full")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestASecondOperatorOnTheSameJournalNamesTheFirst(t *testing.T) {
	t.Parallel()
	_, o := install(t, nil)
	first := o.startReady()
	second := newOperator(t, o.kubeconfig, nil)
	second.journal = o.journal
	p := second.start()
	if code := p.Wait(await.HangTimeout); code == 0 {
		t.Fatal("two operators run on one journal")
	}
	if pid := strconv.Itoa(first.PID()); !strings.Contains(p.Output.String(), pid) {
		t.Errorf("the error does not name pid %s:\n%s", pid, p.Output.String())
	}
}

func TestTheJournalOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	here, elsewhere := startCluster(t), startCluster(t)
	here.applyShippedRBAC()
	elsewhere.applyShippedRBAC()
	o := newOperator(t, here.kubeconfigFor("kurl/ekco", nil), nil)
	o.startReady()
	o.running.Stop(await.HangTimeout)
	o.kubeconfig = elsewhere.kubeconfigFor("kurl/ekco", nil)
	p := o.start()
	if code := p.Wait(await.HangTimeout); code == 0 {
		t.Fatal("EKCO ran on the journal of another cluster")
	}
	if !strings.Contains(p.Output.String(), "another cluster") {
		t.Errorf("the error does not say why:\n%s", p.Output.Tail(1000))
	}
}

func TestTheHistoryIsFollowedLive(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	follow := child.Start(t, binaries.ekco, "history", "--follow", "-o", "json", "--type", "node.transitioned",
		"--journal", o.journal, "--config", o.config)
	c.node("lose", "worker-1")
	eventually(t, await.HangTimeout, "the follower sees the loss", func() (bool, string) {
		output := follow.Output.String()
		return strings.Contains(output, string(journal.TypeNodeTransitioned)) && strings.Contains(output, "worker-1"), output
	})
}

func TestAnOlderCopyOfTheJournalThatWasPutBackMeansSafeModeUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"purge_dead_nodes": "true"})
	o.startReady()
	o.running.Stop(await.HangTimeout)
	older, err := os.ReadFile(o.journal)
	if err != nil {
		t.Fatal(err)
	}
	o.startReady()
	o.mustEkco("pause", "--reason", "the rack is moved")
	mirrored := func() (string, bool) {
		mirror, err := c.client.CoreV1().ConfigMaps("kurl").Get(t.Context(), "ekco-journal", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		var content struct{ At journal.Position }
		err = json.Unmarshal([]byte(mirror.Data["actions.json"]), &content)
		return mirror.ResourceVersion, err == nil && content.At.Seq >= o.status().Journal.LastSeq
	}
	eventually(t, await.HangTimeout, "the mirror covers the pause", func() (bool, string) {
		version, covers := mirrored()
		return covers, version
	})
	o.running.Stop(await.HangTimeout)
	version, _ := mirrored()

	if err := os.WriteFile(o.journal, older, 0o600); err != nil {
		t.Fatal(err)
	}
	o.startReady()
	if output := o.mustEkco("status"); o.status().Journal.Outdated == nil || !strings.Contains(output, "lost its newest events") {
		t.Fatalf("EKCO did not notice:\n%s", output)
	}
	c.node("lose", "worker-1")
	o.waitRefusal(journal.ActionPurgeNode, fsm.RuleSafeMode)
	if now, _ := mirrored(); now != version {
		t.Error("the mirror was written in safe mode")
	}
	o.mustEkco("journal", "accept")
	if pause := o.status().Pauses[""]; pause.Reason != "the rack is moved" {
		t.Errorf("the pause that the file lost is %+v, want that of the mirror", pause)
	}
	o.mustEkco("resume")
	o.waitState("worker-1", fsmnode.Purged)
	o.running.Stop(await.HangTimeout)
	o.startReady()
	if o.status().Journal.Outdated != nil {
		t.Error("what was accepted is found again")
	}
	o.mustEkco("journal", "verify")
}
