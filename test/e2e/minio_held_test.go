package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

const leadsToSingle = `{"app":"minio"}`

// waitHeld waits until the migration is held by a preflight with all of this in its reason, and fails
// unless clients are led to the single MinIO then. It returns the action.
func (m *minioCluster) waitHeld(preflight string, reason ...string) (action string) {
	m.t.Helper()
	m.seldom(fmt.Sprintf("%s holds it: %q", preflight, reason), func() (held bool, seen string) {
		if action, held = m.heldBy(preflight, reason...); held {
			return true, ""
		}
		return false, m.o.shown()
	})
	if leads := m.leads(); leads != leadsToSingle {
		m.t.Errorf("while %s holds it, Service minio selects %s", preflight, leads)
	}
	return action
}

// heldBy returns the migration that the preflight holds for a reason with these parts, if one is.
func (m *minioCluster) heldBy(preflight string, reason ...string) (action string, held bool) {
	m.t.Helper()
	for _, open := range m.o.status().Actions {
		for _, hold := range open.Holds {
			if open.Kind == journal.ActionMigrateMinio && hold.Preflight == preflight && !slices.ContainsFunc(reason, func(part string) bool { return !strings.Contains(hold.Reason, part) }) {
				m.t.Logf("%s: %s", preflight, hold.Reason)
				return open.ID, true
			}
		}
	}
	return "", false
}

// leads is where Service minio leads.
func (m *minioCluster) leads() string {
	m.t.Helper()
	return m.c.minioLeads()
}

// waitPlace waits until EKCO has put that on record since it was started.
func (m *minioCluster) waitPlace(place string) {
	m.t.Helper()
	m.eventually(place, func() (bool, string) {
		return slices.Contains(m.places(), place), fmt.Sprint(m.places())
	})
}

// effect matches a request by what it changes.
func effect(name string) func(*http.Request) bool {
	return func(r *http.Request) bool { return minioEffect(r) == name }
}

// migrationHeldBeforeTheSwitch: only real components show that clients keep using the single MinIO while it
// has an object that it does not list, refuses EKCO's credentials, and while its node is cordoned.
func migrationHeldBeforeTheSwitch(m *minioCluster) {
	t := m.t
	m.installMinio()
	steady := m.few()
	_, node := m.singlePod()
	m.c.cordon(node, true) // the other three are ready
	m.c.setMinioSecret("outdated")
	hidden := m.nest()
	m.installEKCO(nil)

	m.o.startReady()
	action := m.waitHeld("MinioNothingNested", "reports/report/2026.csv (below report)")
	hidden.rename(t)
	m.o.mustEkco("retry", action)
	m.waitHeld("MinioBothAnswer", "does not accept the credentials of Secret minio-credentials")
	m.c.setMinioSecret(miniotest.SecretKey)
	m.waitHeld("MinioSuccessor", node+" is cordoned")
	if did := steady.Did(); did.Failed > 0 {
		t.Errorf("until the switch begins, the client did %+v", did)
	}
	ends := m.g.holdAll(effect(endsPod))
	m.c.cordon(node, false)
	ends.awaitWithin(t, await.HangTimeout)
	if leads := m.leads(); leads != `{"doesnotexist":"doesnotexist"}` {
		t.Errorf("while the switch is made, Service minio selects %s", leads)
	}
	m.c.cordon(node, true)
	took := m.o.running.Stop(await.HangTimeout)
	t.Logf("EKCO ended %s after SIGTERM in the switch", took)
	if leads := m.leads(); leads != leadsToSingle {
		t.Errorf("EKCO ended in the switch, and Service minio selects %s", leads)
	}
	m.g.drop(m.t, ends)
	ends.pass()

	m.o.startReady()
	action = m.waitHeld("MinioSuccessor", node+" is cordoned")
	steady.Stop() // what is written from here on may be lost
	m.o.mustEkco("retry", action, "--force", "--reason", "nobody writes")
	m.waitSwitched(0)
	t.Log(m.o.mustEkco("status", "--component", "minio"))
	m.waitServed()
	m.audit(steady)
	m.o.waitDone(journal.ActionMigrateMinio, 1)
	m.c.cordon(node, false)
	t.Logf("the client did %+v\n%s", steady.Did(), m.story())
}
