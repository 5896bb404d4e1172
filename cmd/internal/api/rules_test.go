package api

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheRulesForAlertsAskForMetricsThatThereAre: an alert on a metric of another name would never fire.
func TestTheRulesForAlertsAskForMetricsThatThereAre(t *testing.T) {
	rules, err := os.ReadFile("../../../deploy/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What a machine measures of its things is served under the name that it gives: for
	// this one the tests of fsm/certificates look at that.
	served := metricTable(t, map[string]string{}) + "| `ekco_certificate_expiry_timestamp_seconds` |"
	asked := 0
	for line := range strings.Lines(string(rules)) {
		if !strings.Contains(line, "expr:") {
			continue
		}
		for _, name := range regexp.MustCompile(`ekco_[a-z_]+`).FindAllString(line, -1) {
			asked++
			if !strings.Contains(served, "| `"+name+"` |") {
				t.Errorf("there is no metric %s: %s", name, line)
			}
		}
	}
	if asked < 10 {
		t.Errorf("the rules ask for %d metrics", asked)
	}
}
