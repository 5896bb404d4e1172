package api

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/operations.md (when to alert is kept as it is), and what the golden journals fold to")

const (
	docs       = "../../../docs/operations.md"
	tableStart = "<!-- metrics: all but \"alert when\" written by `go test ./cmd/internal/api -update` -->\n"
	tableEnd   = "<!-- end of metrics -->\n"
)

func TestTheDocumentationListsEveryMetricAndWhenToAlert(t *testing.T) {
	content, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), tableStart)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table of metrics", docs)
	}
	want := metricTable(t, alerts(table))
	if *update {
		if err := os.WriteFile(docs, []byte(before+tableStart+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("%s is not up to date: %s", docs, diff)
	}
	if strings.Contains(table, "|  |\n") {
		t.Errorf("%s does not say of every metric when to alert", docs)
	}
}

// metricTable describes what /metrics serves of EKCO's own.
func metricTable(t *testing.T, alerts map[string]string) string {
	t.Helper()
	m := busyMetrics(t)
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := make(map[string]bool)
	var out strings.Builder
	out.WriteString("| metric | type | labels | meaning | alert when |\n|---|---|---|---|---|\n")
	for _, family := range families {
		name := family.GetName()
		served[name] = true
		if strings.HasPrefix(name, "ekco_") {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()),
				labels(family), family.GetHelp(), alerts[name])
		}
	}
	for _, name := range registered(m.registry) {
		if strings.HasPrefix(name, "ekco_") && !served[name] {
			t.Errorf("busyMetrics leaves %s without a value, so that its labels are not known", name)
		}
	}
	return out.String()
}

func labels(family *dto.MetricFamily) string {
	var names []string
	for _, pair := range family.GetMetric()[0].GetLabel() {
		names = append(names, "`"+pair.GetName()+"`")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// registered returns the names of all metrics, also of those without a value.
func registered(registry *prometheus.Registry) (names []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for description := range descriptions {
		names = append(names, name.FindStringSubmatch(description.String())[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// alerts returns the last column of the table, by metric.
func alerts(table string) map[string]string {
	found := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.* \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		found[row[1]] = row[2]
	}
	return found
}
