package actions_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write the golden plans in testdata/plans anew")

// shape is a cluster and a request whose plan is kept as a golden file.
type shape struct {
	// about is the file's first line.
	about string
	world func(s *whole)
	// request is that of a purge of w1, unless its kind says otherwise.
	request journal.ActionRequested
	// lost is the subject, when it is not w1.
	lost func(s *whole) journal.Subject
}

var byHand = journal.ActionRequested{Manual: true}

// shapes are by the names of their files.
var shapes = map[string]shape{
	"clear-node": {
		about:   "The pods of a lost worker are freed.",
		request: journal.ActionRequested{Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: []journal.PodRef{{Namespace: "default", Name: "web-0", UID: "uid-web-0"}, {Namespace: "default", Name: "web-1", UID: "uid-web-1"}}}},
		lost:    (*whole).lostWorker,
	},
	"worker":                          {about: "A lost worker without OSDs, by itself.", lost: (*whole).lostWorker},
	"worker-with-storage":             {about: "A lost worker with three OSDs, by itself.", lost: (*whole).lostStorageWorker},
	"primary":                         {about: "A lost primary in a cluster without Rook, by itself.", world: withoutRook},
	"primary-by-hand":                 {about: "A lost primary in a cluster without Rook, asked for by hand.", world: withoutRook, request: byHand},
	"primary-with-storage":            {about: "A lost primary with three OSDs, by itself."},
	"primary-with-storage-by-hand":    {about: "A lost primary with three OSDs, asked for by hand.", request: byHand},
	"ceph-away":                       {about: "A lost primary with three OSDs, asked for by hand while Ceph does not answer.", world: func(s *whole) { s.ceph.Outage(true) }, request: byHand},
	"rook-unread":                     {about: "A lost primary, asked for by hand while Rook's objects may not be read.", world: func(s *whole) { s.rook.Forbid(readsOfRook...) }, request: byHand},
	"rook-unread-live":                {about: "A primary that answers, asked for by hand while Rook's objects may not be read.", world: func(s *whole) { s.answers(); s.rook.Forbid(readsOfRook...) }, request: live},
	"rook-not-managed":                {about: "A lost primary, asked for by hand where Rook is not managed and there is a CephCluster.", world: func(s *whole) { s.unmanaged = true }, request: byHand},
	"live":                            {about: "A primary with three OSDs that answers, asked for by hand.", world: (*whole).answers, request: live},
	"live-with-osd_purge_wait":        {about: "A primary with three OSDs that answers, asked for by hand, with osd_purge_wait of 2 h.", world: func(s *whole) { s.answers(); s.wait = 2 * time.Hour }, request: live},
	"osd_purge_wait":                  {about: "A lost primary with three OSDs, by itself, with osd_purge_wait of 2 h.", world: func(s *whole) { s.wait = 2 * time.Hour }},
	"ceph-away-with-osd_purge_wait":   {about: "A lost primary with three OSDs, asked for by hand while Ceph does not answer, with osd_purge_wait of 2 h.", world: func(s *whole) { s.wait = 2 * time.Hour; s.ceph.Outage(true) }, request: byHand},
	"installers-list":                 {about: "A lost primary with three OSDs, by itself; the list of storage nodes is the installer's.", world: func(s *whole) { s.userManaged = true }},
	"osds-without-deployments":        {about: "A lost primary with three OSDs whose Deployments are gone already, by itself.", world: func(s *whole) { s.removeOSDs(3, 12, 107) }},
	"replaced":                        {about: "A lost primary, by itself; another Node has its name already.", world: func(s *whole) { s.cluster.ReplaceNode("w1") }},
	"traced":                          {about: "A node that EKCO never saw, of which everything but the Node is left.", world: func(s *whole) { s.cluster.RemoveNode("w1") }, request: byHand, lost: traced},
	"traced-of-which-nothing-is-left": {about: "A node that EKCO never saw, and of which nothing is left.", request: byHand, lost: func(*whole) journal.Subject { return journal.NodeSubject("w8", journal.TracedUID("w8")) }},
}

var live = journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}

func withoutRook(s *whole) { s.rook.SetInstallation(rook.Installation{}) }

func traced(*whole) journal.Subject { return journal.NodeSubject("w1", journal.TracedUID("w1")) }

// answers makes w1 a node that is well.
func (s *whole) answers() {
	s.cluster.ReturnNode("w1")
	s.ceph.ReturnHost("w1")
}

// lostWorker adds w5, which has nothing but itself.
func (s *whole) lostWorker() journal.Subject {
	node := s.cluster.AddNode("w5", journal.RoleWorker)
	s.cluster.LoseNode("w5")
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
	s.t.Helper()
	if sh.world != nil {
		sh.world(s)
	}
	record := journal.ActionRecord{ID: actionID, Subject: journal.NodeSubject("w1", s.node.UID), Request: sh.request}
	if sh.lost != nil {
		record.Subject = sh.lost(s)
	}
	if record.Request.Kind == "" {
		record.Request.Kind = journal.ActionPurgeNode
	}
	record.Kind = record.Request.Kind
	runner := actions.NewRunner(withPreflights(s.cfg(), policy(actions.Pass())))
	var err error
	if record.Plan, _, err = runner.Explain(s.t.Context(), record); err != nil {
		s.t.Fatal(err)
	}
	record.Planned = true
	always, first, err := runner.Guards(s.t.Context(), record)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.write(record.Plan, always, first)
}

func TestEveryStepHasItsGuardsItsFlagsAndItsPlaceInThePlan(t *testing.T) {
	for name, sh := range shapes {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				golden(t, name, sh.about+"\n"+sh.plan(s))
			})
		})
	}
}

// golden compares a plan with the one that is kept.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := goldenPlan(name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Split(read(t, file), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (- kept, + now; if it is meant: go test ./actions -run %s -update):\n%s",
			file, "TestEveryStepHasItsGuardsItsFlagsAndItsPlaceInThePlan", diff)
	}
}

func goldenPlan(name string) string { return filepath.Join("testdata", "plans", name+".txt") }

// write puts a plan into words: its steps in order, each with its flags, the
// steps it comes after, its guards in the order in which they are listed, those
// besides that it has in every plan, and those that it has as long as it may be
// the first to destroy something.
func (s *whole) write(plan journal.Plan, always, first map[string][]string) string {
	var text strings.Builder
	for _, step := range slices.Concat(plan.Steps, plan.Undo) {
		fmt.Fprintf(&text, "\n%s\n", step.ID)
		line := func(what, words string) {
			if words != "" {
				fmt.Fprintf(&text, "    %-7s %s\n", what, words)
			}
		}
		line("flags", strings.Join(s.flags(step), ", "))
		line("after", strings.Join(step.After, ", "))
		line("guards", strings.Join(shortened(step.Preflights), ", "))
		line("besides", strings.Join(shortened(always[step.ID][len(step.Preflights):]), ", "))
		line("first", strings.Join(first[step.ID][len(always[step.ID]):], ", "))
		line("input", string(step.Input))
	}
	if strings.Contains(text.String(), "policy") {
		fmt.Fprintf(&text, "\npolicy: %s\n", strings.Join(purgeRules(), ", "))
	}
	return text.String()
}

func (s *whole) flags(step journal.PlannedStep) []string {
	var flags []string
	if !strings.HasPrefix(step.ID, step.Does) {
		flags = append(flags, "does "+step.Does)
	}
	if step.Irreversible {
		flags = append(flags, "cannot be undone")
	}
	if step.Undoes != "" {
		flags = append(flags, "undoes "+step.Undoes)
	}
	for _, kind := range productKinds(s.world) {
		if code, known := kind.Steps[step.Does]; known {
			if atomic, ok := code.(actions.AtomicStep); ok && atomic.Atomic() {
				flags = append(flags, "atomic")
			}
		}
	}
	if step.MayWaitFor != "" {
		flags = append(flags, "may wait for "+strings.Join(append([]string{step.MayWaitFor}, step.MayAlsoWaitFor...), " or "))
	}
	return append(flags, "at most "+time.Duration(step.Timeout).String())
}

// shortened says policy where all of it is listed together.
func shortened(guards []string) []string {
	policy := purgeRules()
	for i := range guards {
		if i+len(policy) <= len(guards) && slices.Equal(guards[i:i+len(policy)], policy) {
			return slices.Concat(guards[:i], []string{"policy"}, guards[i+len(policy):])
		}
	}
	return guards
}

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
