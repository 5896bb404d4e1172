package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/fsm"
)

// onlyWarn are preflights that hold nothing: only a person's purge has them.
var onlyWarn = []string{purge.NodeWasSeen, purge.RookManaged}

// pagesOfCapabilities are what the list's page of what holds EKCO back must lead to.
var pagesOfCapabilities = []string{"purge.md", "envoy.md", "monitoring.md", "kotsadm.md", "minio.md", "rook.md", "kubelet-certificates.md"}

// TestThePageOfHoldsNamesEveryPreflightAndRule: of the whole list, so that a capability
// cannot leave its own out.
func TestThePageOfHoldsNamesEveryPreflightAndRule(t *testing.T) {
	operations, holds := rowsOf(t, "operations.md", "EKCO does nothing"), rowsOf(t, "purge.md", "What to do at each hold")
	checks := map[string]bool{}
	for _, capability := range capabilities(cluster{}) {
		if capability.Actions != nil {
			for _, definition := range capability.Actions(nil) {
				for name := range definition.Preflights {
					checks[name] = true
				}
			}
		}
	}
	for _, rule := range fsm.NewState(capabilities(cluster{}).Machines()...).RuleNames() {
		checks[rule] = true
	}
	if len(checks) < 20 {
		t.Fatalf("there are only %q", slices.Sorted(maps.Keys(checks)))
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		is := regexp.MustCompile(`\b` + name + `\b`)
		if !slices.Contains(onlyWarn, name) && !is.MatchString(operations) && !is.MatchString(holds) {
			t.Errorf("docs/operations.md does not say what to do at %s", name)
		}
	}
	for _, page := range pagesOfCapabilities {
		if !strings.Contains(pageOf(t, "operations.md"), "("+page) {
			t.Errorf("docs/operations.md does not lead to %s", page)
		}
	}
}

func pageOf(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// rowsOf returns the first cells of the tables in a section.
func rowsOf(t *testing.T, name, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(pageOf(t, name), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var cells strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		cells.WriteString(row[1] + "\n")
	}
	return cells.String()
}
