package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// rqlite returns how large the database is asked to be, and how many of its replicas are
// ready, as in "1 1 ready".
func (c *cluster) rqlite() string {
	c.t.Helper()
	read := func(path string) string {
		return c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={"+path+"}")
	}
	_, expect, _ := strings.Cut(read(".spec.template.spec.containers[0].args[2]"), "-bootstrap-expect=")
	return fmt.Sprintf("%s/%s, %s ready", read(".spec.replicas"), expect, read(".status.readyReplicas"))
}

func (c *cluster) waitRqlite(want string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "the database is "+want, func() (bool, string) {
		is := c.rqlite()
		return is == want, is
	})
}

// addVolumes makes volumes that claims without a class can have.
func (c *cluster) addVolumes(names ...string) {
	c.t.Helper()
	var volumes strings.Builder
	for _, name := range names {
		fmt.Fprintf(&volumes, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/%s}}
`, name, name)
	}
	path := filepath.Join(c.t.TempDir(), "volumes.yaml")
	if err := os.WriteFile(path, []byte(volumes.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("apply", "-f", path)
}

// waitScaled waits for the nth scale-kotsadm that is done.
func (o *operator) waitScaled(n int) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, fmt.Sprintf("%d times scaled", n), func() (bool, string) {
		done, last := 0, ""
		for _, event := range o.events() {
			if event.Type == journal.TypeActionEnded && strings.HasPrefix(event.Action, "scale-default-kotsadm-rqlite") {
				last = string(event.Payload)
				if strings.Contains(last, string(journal.OutcomeDone)) {
					done++
				}
			}
		}
		return done == n, last
	})
}

// has reports whether an event of the type is about something of that name.
func (o *operator) has(typ journal.Type, name string) bool {
	return slices.ContainsFunc(o.events(), func(e journal.Event) bool { return e.Type == typ && e.Subject.Name == name })
}

// sees3 returns how often EKCO has noted that the database is asked to have three replicas.
func (o *operator) sees3() int {
	return strings.Count(o.mustEkco("history", "--since", "1h"), "specifies 3 (-bootstrap-expect=3) replicas")
}

func TestTheDatabaseOfKotsadmGrowsUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"enable_ha_kotsadm": "true", "kotsadm_ready_timeout": "5s"})
	c.applyShipped("kotsadm")
	for _, name := range []string{"primary-1", "primary-2", "primary-3"} {
		c.kubectl("delete", "node", name)
	}
	c.kubectl("delete", "node", "worker-3")
	manifest := filepath.Join("..", "kurl", "kotsadm.yaml")
	o.startReady()
	c.addVolumes("volume-1")
	c.kubectl("apply", "-f", manifest) // appears while EKCO runs
	c.waitRqlite("1/1, 1 ready")
	eventually(t, await.HangTimeout, "EKCO has seen it", func() (bool, string) {
		status := o.mustEkco("status", "-o", "wide")
		return strings.Contains(status, "default/kotsadm-rqlite") && strings.Contains(status, "Single"), status
	})
	uid := c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={.metadata.uid}")

	// The third node is there, and there are no volumes for further replicas.
	joined := time.Now()
	c.node("add", "worker-4", "--role", "worker")
	eventually(t, await.HangTimeout, "it is asked to have three replicas", func() (bool, string) {
		is := c.rqlite()
		return strings.HasPrefix(is, "3/3"), is
	})
	t.Logf("asked for three replicas %s after the node was added", time.Since(joined))
	eventually(t, await.HangTimeout, "it is held with the pods' reasons", func() (bool, string) {
		status := o.mustEkco("status")
		return strings.Contains(status, "KotsadmReady") && strings.Contains(status, "1 of 3 replicas are ready, 2 of the new revision; kotsadm-rqlite-0: of revision") &&
			strings.Contains(status, "kotsadm-rqlite-1: Pending: Unschedulable"), status
	})
	t.Log(o.mustEkco("status"))

	c.addVolumes("volume-2", "volume-3")
	o.waitScaled(1)
	c.waitRqlite("3/3, 3 ready")

	// KOTS is installed again.
	c.kubectl("apply", "-f", manifest, "--server-side", "--force-conflicts")
	o.waitScaled(2)
	c.waitRqlite("3/3, 3 ready")

	// With two nodes it stays as it is.
	c.kubectl("delete", "node", "worker-4")
	eventually(t, await.HangTimeout, "EKCO knows that the node is gone", func() (bool, string) {
		return o.has(journal.TypeNodeGone, "worker-4"), "it does not"
	})
	looks := o.sees3()
	c.kubectl("patch", "statefulset", "kotsadm-rqlite", "--type=merge", "-p", `{"spec":{"minReadySeconds":1}}`)
	eventually(t, await.HangTimeout, "EKCO has looked since", func() (bool, string) {
		now := o.sees3()
		return now > looks, fmt.Sprintf("it has seen three replicas %d times, as before", now)
	})
	if is := c.rqlite(); !strings.HasPrefix(is, "3/3") {
		t.Errorf("with two nodes it is %s", is)
	}
	// Of another version, since of the same one this would be the third time within an hour.
	c.kubectl("set", "image", "statefulset/kotsadm-rqlite", "rqlite=docker.io/kotsadm/rqlite:8.30.3")
	c.kubectl("scale", "statefulset", "kotsadm-rqlite", "--replicas=5")
	eventually(t, await.HangTimeout, "EKCO has seen five", func() (bool, string) {
		history := o.mustEkco("history", "--since", "1h")
		return strings.Contains(history, "specifies 5 (-bootstrap-expect=3) replicas"), history
	})
	if is := c.rqlite(); !strings.HasPrefix(is, "5/3") {
		t.Errorf("with two nodes it is %s", is)
	}

	// With the third node it goes down from five, and what is left is as it was asked for.
	c.node("add", "worker-5", "--role", "worker")
	o.waitScaled(3)
	c.waitRqlite("3/3, 3 ready")
	if updated := c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={.status.replicas} {.status.updatedReplicas}"); updated != "3 3" {
		t.Errorf("replicas, and those that are updated, are %s", updated)
	}
	if now := c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Errorf("it was replaced: %s is %s", uid, now)
	}
}
