package purge_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

const (
	purgePage    = "../../docs/purge.md"
	purgeDetails = "../../docs/purge-details.md"
)

func TestEveryTestThatTheDocsNameExists(t *testing.T) {
	page := read(t, "../../docs/purge-evidence.md") + read(t, "../../docs/how-it-works.md")
	var sources strings.Builder
	err := filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, "_test.go") {
			sources.WriteString(read(t, file))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(page, -1)
	if len(named) < 20 {
		t.Errorf("the pages name only %d tests", len(named))
	}
	for _, name := range named {
		if !strings.Contains(sources.String(), "func "+name[1]+"(t *testing.T)") {
			t.Errorf("there is no %s", name[1])
		}
	}
}

func TestTheDocsKnowEveryStepAndEveryPreflightOfAPurge(t *testing.T) {
	page, preflights := read(t, purgePage), firstCells(t, purgeDetails, "The preflights")
	inWhole(t, func(t *testing.T, s *whole) {
		s.wait = 1
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		plan, checks, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(preflights, "`"+purge.RookManaged+"`") {
			t.Errorf("preflight %s is not in the table", purge.RookManaged)
		}
		for _, step := range plan.Steps {
			if !strings.Contains(page, "| `"+step.Does) {
				t.Errorf("step %s is not in the table", step.Does)
			}
		}
		policy := append([]string{actions.SafeMode}, nodestest.Rules(journal.ActionPurgeNode)...)
		checks = append(checks, actions.Check{Preflight: actions.Mirrored})
		for _, check := range checks {
			isPolicy := false
			for _, rule := range policy {
				isPolicy = isPolicy || rule == check.Preflight
			}
			if !isPolicy && !strings.Contains(preflights, "`"+check.Preflight+"`") {
				t.Errorf("preflight %s is not in the table", check.Preflight)
			}
		}
	})
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
