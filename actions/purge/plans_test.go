package purge_test

import (
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write the golden plans in testdata/plans anew")

// shape is a cluster and a request whose plan is kept as a golden file.
type shape struct {
	// about is the file's first line.
	about string
	world func(s *whole)
	// request is that of a purge of w1.
	request journal.ActionRequested
	// lost is the subject, when it is not w1.
	lost func(s *whole) journal.Subject
}

var byHand = journal.ActionRequested{Manual: true}

// shapes are by the names of their files.
var shapes = map[string]shape{
	"worker":                          {about: "A lost worker without OSDs, by itself.", lost: (*whole).lostWorker},
	"worker-with-storage":             {about: "A lost worker with three OSDs, by itself.", lost: (*whole).lostStorageWorker},
	"primary":                         {about: "A lost primary in a cluster without Rook, by itself.", world: withoutRook},
	"primary-by-hand":                 {about: "A lost primary in a cluster without Rook, asked for by hand.", world: withoutRook, request: byHand},
	"primary-with-storage":            {about: "A lost primary with three OSDs, by itself."},
	"primary-with-storage-by-hand":    {about: "A lost primary with three OSDs, asked for by hand.", request: byHand},
	"ceph-away":                       {about: "A lost primary with three OSDs, asked for by hand while Ceph does not answer.", world: func(s *whole) { s.ceph.Outage(true) }, request: byHand},
	"rook-unread":                     {about: "A lost primary, asked for by hand while Rook's objects may not be read.", world: func(s *whole) { s.rook.Forbid(readsOfRook...) }, request: byHand},
	"rook-unread-live":                {about: "A primary that answers, asked for by hand while Rook's objects may not be read.", world: func(s *whole) { s.answers(); s.rook.Forbid(readsOfRook...) }, request: live},
	"rook-not-managed":                {about: "A lost primary, asked for by hand where Rook is not managed and there is a CephCluster.", world: func(s *whole) { s.nodeListOnlyOnRequest = true }, request: byHand},
	"rook-left-alone":                 {about: "A lost primary, asked for by hand with --maintain_rook_storage_nodes=false.", request: leavesRook},
	"live":                            {about: "A primary with three OSDs that answers, asked for by hand.", world: (*whole).answers, request: live},
	"live-unasked":                    {about: "A primary with three OSDs that is ready, by somebody who could not be asked.", world: (*whole).answers, request: unasked},
	"live-with-osd_purge_wait":        {about: "A primary with three OSDs that answers, asked for by hand, with osd_purge_wait of 2 h.", world: func(s *whole) { s.answers(); s.wait = 2 * time.Hour }, request: live},
	"osd_purge_wait":                  {about: "A lost primary with three OSDs, by itself, with osd_purge_wait of 2 h.", world: func(s *whole) { s.wait = 2 * time.Hour }},
	"ceph-away-with-osd_purge_wait":   {about: "A lost primary with three OSDs, asked for by hand while Ceph does not answer, with osd_purge_wait of 2 h.", world: func(s *whole) { s.wait = 2 * time.Hour; s.ceph.Outage(true) }, request: byHand},
	"installers-list":                 {about: "A lost primary with three OSDs, by itself; the list of storage nodes is the installer's.", world: func(s *whole) { s.userManaged = true }},
	"osds-without-deployments":        {about: "A lost primary with three OSDs whose Deployments are gone already, by itself.", world: func(s *whole) { s.removeOSDs(3, 12, 107) }},
	"replaced":                        {about: "A lost primary, by itself; another Node has its name already.", world: func(s *whole) { s.Cluster.ReplaceNode("w1") }},
	"traced":                          {about: "A node that EKCO never saw, of which everything but the Node is left.", world: func(s *whole) { s.Cluster.RemoveNode("w1") }, request: byHand, lost: traced},
	"traced-of-which-nothing-is-left": {about: "A node that EKCO never saw, and of which nothing is left.", request: byHand, lost: func(*whole) journal.Subject { return journal.NodeSubject("w8", journal.TracedUID("w8")) }},
}

// leavesRook requests a purge that leaves Rook alone.
var leavesRook = journal.ActionRequested{Manual: true, Input: journal.PurgeInput{MaintainRook: new(bool)}}

var live = journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}

func withoutRook(s *whole) { s.rook.SetInstallation(rook.Installation{}) }

func traced(*whole) journal.Subject { return journal.NodeSubject("w1", journal.TracedUID("w1")) }

// answers makes w1 a node that is well.
func (s *whole) answers() {
	s.Cluster.ReturnNode("w1")
	s.ceph.ReturnHost("w1")
}

// lostWorker adds w5, which has nothing but itself.
func (s *whole) lostWorker() journal.Subject {
	node := s.Cluster.AddNode("w5", journal.RoleWorker)
	s.Cluster.LoseNode("w5")
	return journal.NodeSubject("w5", node.UID)
}

// lostStorageWorker adds w5 with OSDs.
func (s *whole) lostStorageWorker() journal.Subject {
	for _, ref := range s.ceph.AddHost("w5", 30, 31, 32) {
		s.rook.AddOSDOf(ref, "w5")
	}
	s.rook.ListNode("w5")
	s.ceph.LoseHost("w5")
	return s.lostWorker()
}

// plan returns the plan in words.
func (sh shape) plan(s *whole) string {
	s.T.Helper()
	if sh.world != nil {
		sh.world(s)
	}
	record := journal.ActionRecord{Subject: journal.NodeSubject("w1", s.node.UID), Request: sh.request}
	if sh.lost != nil {
		record.Subject = sh.lost(s)
	}
	return s.Plan(s.kinds(nil)[0], record)
}

func TestEveryStepHasItsGuardsItsFlagsAndItsPlaceInThePlan(t *testing.T) {
	for name, sh := range shapes {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				actionstest.Golden(t, goldenPlan(name), sh.about+"\n"+sh.plan(s), *update)
			})
		})
	}
}

func goldenPlan(name string) string { return filepath.Join("testdata", "plans", name+".txt") }

func TestEveryGoldenPlanIsOfAShape(t *testing.T) {
	kept, err := filepath.Glob(goldenPlan("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if _, ok := shapes[strings.TrimSuffix(filepath.Base(file), ".txt")]; !ok {
			t.Errorf("%s belongs to no shape any more", file)
		}
	}
}

func TestTheGoldenPlansKnowEveryStepOfThePurge(t *testing.T) {
	var plans strings.Builder
	for name := range shapes {
		plans.WriteString(read(t, goldenPlan(name)))
	}
	steps := regexp.MustCompile("(?m)^`([a-z-]+)").FindAllStringSubmatch(firstCells(t, purgePage, "The steps"), -1)
	if len(steps) < 10 {
		t.Errorf("the page names only %q", steps)
	}
	for _, step := range steps {
		if !strings.Contains(plans.String(), "\n"+step[1]) {
			t.Errorf("no plan has step %s", step[1])
		}
	}
}
