package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// The effects of a migration on the cluster.
const (
	disablesService = "have the Service lead nowhere"
	switchesService = "have the Service lead to ha-minio"
	revertsService  = "have the Service lead to minio"
	endsPod         = "end the pod"
	endsDeployment  = "delete the Deployment"
	endsClaim       = "delete the claim"
)

// minioEffect returns what a migration would change by the request, or nothing.
func minioEffect(r *http.Request) string {
	path, here := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/minio/")
	switch {
	case here && r.Method == http.MethodPatch && path == "services/minio":
		return serviceEffect(r)
	case here && r.Method == http.MethodDelete && strings.HasPrefix(path, "pods/minio-"):
		return endsPod
	case here && r.Method == http.MethodDelete && path == "persistentvolumeclaims/minio-pv-claim":
		return endsClaim
	case endsSingle(r):
		return endsDeployment
	}
	return ""
}

// serviceEffect reads a patch of the Service's selector, and leaves it to be read again.
func serviceEffect(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var ops []struct {
		Op    string
		Value any
	}
	if err != nil || json.Unmarshal(body, &ops) != nil {
		return ""
	}
	for _, op := range ops {
		to, is := op.Value.(map[string]any)
		switch {
		case op.Op != "replace" || !is:
		case to["app"] == "ha-minio":
			return switchesService
		case to["app"] == "minio":
			return revertsService
		default:
			return disablesService
		}
	}
	return ""
}

// recorded matches what EKCO's log says once it is on record.
var recorded = regexp.MustCompile(`"msg":"(step started|step done|step recorded its progress)","action":"migrate-minio[^\n]*"step":"([a-z-]+)"`)

// places are those of a migration that EKCO has put on record since it was started.
func (m *minioCluster) places() (places []string) {
	for _, match := range recorded.FindAllStringSubmatch(m.o.running.Output.String(), -1) {
		places = append(places, match[1]+" "+match[2])
	}
	return places
}

// migrated returns how many migrations have come to their end, by the journal.
func (m *minioCluster) migrated() int {
	m.t.Helper()
	ended := m.o.ended(journal.ActionMigrateMinio)
	for _, outcome := range ended {
		if outcome != journal.OutcomeDone {
			m.t.Fatalf("migrations ended %v\n%s", ended, m.story())
		}
	}
	return len(ended)
}

// killAtEffects kills EKCO before and after each effect and starts it again, until the migration has
// ended. dead maps a place to what to do there while EKCO is dead.
func (m *minioCluster) killAtEffects(dead map[string]func()) (killed []string) {
	m.t.Helper()
	m.g.effectOf, m.g.interrupt = minioEffect, &interrupter{}
	reached := m.g.interrupt.arm(func(interruption) bool { return true }, false)
	defer m.g.interrupt.disarm()
	m.o.start()
	ask := time.NewTicker(2 * time.Second)
	defer ask.Stop()
	limit := time.NewTimer(await.HangTimeout)
	defer limit.Stop()
	for {
		select {
		case at := <-reached:
			m.kill()
			killed = append(killed, at.String())
			if do := dead[at.String()]; do != nil {
				do()
			}
			m.g.interrupt.release()
			m.o.start()
			limit.Reset(await.HangTimeout)
		case <-limit.C:
			m.t.Fatalf("the migration did not go on; EKCO was killed %q\n%s", killed, m.story())
		case <-ask.C:
			if m.o.hasJournal() && m.ended() {
				return killed
			}
		}
		if !m.o.running.Running() {
			m.t.Fatalf("EKCO ended:\n%s", m.o.running.Output.Tail(2000))
		}
	}
}

// ended reports whether the migration has. EKCO rests after a switch that came to nothing, as
// that does in which it is killed twice: a person has it tried again at once.
func (m *minioCluster) ended() bool {
	m.t.Helper()
	if m.migrated() > 0 {
		return true
	}
	if action, rests := m.heldBy("MinioTries"); rests {
		m.o.mustEkco("retry", action, "--reason", "EKCO was killed in the switch")
	}
	return false
}

// killAtRandom kills EKCO so many times at random and starts it again, until another migration
// has ended: each time up to two seconds after it has come to one to six places. It returns how
// often it did.
func (m *minioCluster) killAtRandom(random *rand.Rand, times int) (kills int) {
	m.t.Helper()
	for {
		m.o.start()
		done, places, looks := false, 1+random.IntN(6), 0
		await.Looking(m.t, time.Second/5, await.HangTimeout, "EKCO goes on, or has come to the end", func() (bool, string) {
			switch {
			case !m.o.hasJournal():
			case kills < times && len(m.places()) >= places:
				return true, ""
			default:
				if looks++; looks%5 == 0 { // it takes a program
					done = m.ended()
				}
			}
			return done, m.o.running.Output.Tail(2000)
		})
		if done {
			return kills
		}
		<-time.After(time.Duration(random.Int64N(int64(2 * time.Second))))
		m.t.Logf("killed after %q", m.places())
		m.kill()
		kills++
	}
}

// few fills the single MinIO with little, so that a migration is short, and starts a client.
func (m *minioCluster) few() *miniotest.Steady {
	m.t.Helper()
	clients := m.clients()
	clients.versioned()
	clients.people()
	fillBucket(m.t, m.k.proxy.Address(), "many", 40)
	clients.bucket("bucket", minio.MakeBucketOptions{})
	m.had = clients.told("versioned", "many")
	m.steady = miniotest.StartSteady(m.t, m.k.proxy.Address(), "bucket", clientRate)
	return m.steady
}

// kill kills EKCO, and lets the client delete one object until EKCO is killed again. EKCO sets aside 20 versions whose
// deletion it missed, and asks a person about more. On a slow machine it would miss more of them.
func (m *minioCluster) kill() {
	m.steady.LimitDeletions(1)
	m.o.running.Kill()
}

// stopped fails unless the client found all as it wrote it, and the judge what there was before:
// versions with their ids and times, users and what they may.
func (m *minioCluster) stopped(steady *miniotest.Steady) {
	m.t.Helper()
	did := steady.Stop()
	m.t.Logf("the client did %+v", did)
	if did.Acknowledged == 0 {
		m.t.Error("the client did nothing")
	}
	m.wantHandedOver()
	m.audit(steady)
	// A list may lack objects for a moment, as in [minioCluster.audit].
	m.seldom("clients are told what there was before:\n"+m.had, func() (bool, string) {
		has := m.clients().told("versioned", "many")
		return has == m.had, has
	})
}

// migrationKilledAtEachEffect: only a killed process loses its memory and connections, and only real servers
// show whether clients lose anything. The simulation also kills EKCO before and after each journal event.
func migrationKilledAtEachEffect(m *minioCluster) {
	t := m.t
	m.installMinio()
	steady := m.few()
	m.installEKCO(nil)
	began := time.Now()
	killed := m.killAtEffects(map[string]func(){
		// Nobody can write, and the next thing is the switch.
		interruption{switchesService, false}.String(): func() {
			source, target := m.sides()
			source.same(target)
		},
	})
	t.Logf("killed %d times in %s: %q", len(killed), time.Since(began), killed)
	for _, effect := range []string{disablesService, revertsService, endsPod, switchesService, endsDeployment, endsClaim} {
		for _, after := range []bool{false, true} {
			if at := (interruption{effect, after}); !slices.Contains(killed, at.String()) {
				t.Errorf("EKCO was not killed %s", at)
			}
		}
	}
	t.Log(m.story())
	m.stopped(steady)
}

// migrationKilledAtRandom does the same at random moments.
func migrationKilledAtRandom(m *minioCluster) {
	seed := rand.Uint64()
	m.t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	most, migrations := randomKills(m.t)
	kills := 0
	for ; migrations > 0 && kills < most; migrations-- {
		m.installMinio()
		steady := m.few()
		m.installEKCO(nil)
		kills += m.killAtRandom(random, most-kills)
		m.t.Logf("killed %d times", kills)
		m.stopped(steady)
		m.o.running.Kill()
	}
	if kills == 0 {
		m.t.Error("the migration ended before EKCO was killed")
	}
}

// switched returns how many switches EKCO has made, by the journal.
func (o *operator) switched() (switches int) {
	o.t.Helper()
	for _, event := range o.events("--component", "minio", "--type", string(journal.TypeStepDone)) {
		if done := decode[*journal.StepDone](o.t, event); done.Step == journal.StepCutOverMinio && !done.AlreadyDone {
			switches++
		}
	}
	return switches
}

// migrationByTwoEKCOs: only a real API server shows which of two changes at once it takes.
func migrationByTwoEKCOs(m *minioCluster) {
	t := m.t
	m.installMinio()
	steady := m.few()
	m.installEKCO(nil)
	other := newOperator(t, m.c.kubeconfigFor("kurl/ekco", nil), minioKeys(nil))
	m.o.start()
	other.start()
	m.wantHandedOver()
	switches := 0
	for name, o := range map[string]*operator{"one": m.o, "other": other} {
		t.Logf("%s EKCO\n%s", name, o.mustEkco("history", "--component", "minio", "-o", "tree"))
		switches += o.switched()
	}
	if switches != 1 {
		t.Errorf("Service minio was switched %d times, want once", switches)
	}
	m.stopped(steady)
}

// randomKills returns how often to kill EKCO, and in how many migrations at most: EKCO_MINIO_KILLS for both,
// or 6 kills in one migration.
func randomKills(t *testing.T) (kills, migrations int) {
	t.Helper()
	text, set := os.LookupEnv("EKCO_MINIO_KILLS")
	if !set {
		return 6, 1
	}
	kills, err := strconv.Atoi(text)
	if err != nil || kills < 1 {
		t.Fatalf("EKCO_MINIO_KILLS is %q: want a number above zero", text)
	}
	return kills, kills
}
