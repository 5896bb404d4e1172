package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
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
	eventually(c.t, patience, "the database is "+want, func() (bool, string) {
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
	eventually(o.t, patience, fmt.Sprintf("%d times scaled", n), func() (bool, string) {
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

func TestTheDatabaseOfKotsadmGrowsUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"enable_ha_kotsadm": "true"})
	c.applyShipped("rbac-kotsadm.yaml")
	for _, name := range []string{"primary-1", "primary-2", "primary-3"} {
		c.kubectl("delete", "node", name)
	}
	c.kubectl("delete", "node", "worker-3")
	manifest := filepath.Join("..", "kurl", "kotsadm.yaml")
	o.startReady()
	c.addVolumes("volume-1")
	c.kubectl("apply", "-f", manifest) // appears while EKCO runs
	c.waitRqlite("1/1, 1 ready")
	eventually(t, patience, "EKCO has seen it", func() (bool, string) {
		status := o.mustEkco("status")
		return strings.Contains(status, "default/kotsadm-rqlite") && strings.Contains(status, "Single"), status
	})
	uid := c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={.metadata.uid}")

	// The third node is there, and there are no volumes for further replicas.
	joined := time.Now()
	c.node("add", "worker-4", "--role", "worker")
	eventually(t, patience, "it is asked to have three replicas", func() (bool, string) {
		is := c.rqlite()
		return strings.HasPrefix(is, "3/3"), is
	})
	t.Logf("asked for three replicas %s after the node was added", time.Since(joined))
	eventually(t, patience, "it is held with the pods' reasons", func() (bool, string) {
		status := o.mustEkco("status")
		return strings.Contains(status, "KotsadmReady") && strings.Contains(status, "of 3 replicas are ready; kotsadm-rqlite-") &&
			strings.Contains(status, "Pending: Unschedulable"), status
	})
	t.Log(o.mustEkco("status"))

	c.addVolumes("volume-2", "volume-3")
	o.waitScaled(1)
	c.waitRqlite("3/3, 3 ready")

	// KOTS is installed again.
	c.kubectl("apply", "-f", manifest, "--server-side", "--force-conflicts")
	o.waitScaled(2)
	c.waitRqlite("3/3, 3 ready")

	// From five down; and never back to one.
	c.kubectl("delete", "node", "worker-4")
	c.kubectl("scale", "statefulset", "kotsadm-rqlite", "--replicas=5")
	eventually(t, patience, "EKCO has seen five", func() (bool, string) {
		history := o.mustEkco("history", "--since", "1h")
		return strings.Contains(history, "is asked to have 5 (-bootstrap-expect=3) replicas"), history
	})
	if is := c.rqlite(); !strings.HasPrefix(is, "5/3") {
		t.Errorf("with two nodes it is %s", is)
	}
	if now := c.kubectl("get", "statefulset", "kotsadm-rqlite", "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Errorf("it was replaced: %s is %s", uid, now)
	}
}
