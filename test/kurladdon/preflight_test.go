package kurladdon

import (
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// These are the fields of kURL's types that the preflight uses.
type (
	host struct {
		Installer                    installer
		IsPrimary, IsJoin, IsUpgrade bool
	}
	installer struct{ Spec struct{ Ekco *ekcoFields } }

	ekcoFields struct{ EnableInternalLoadBalancer bool }
)

func hostOf(ekco *ekcoFields) host {
	h := host{IsPrimary: true}
	h.Installer.Spec.Ekco = ekco
	return h
}

// TestPreflightChecksWhatTheHostNeeds renders the preflight as kURL does.
func TestPreflightChecksWhatTheHostNeeds(t *testing.T) {
	t.Parallel()
	const disk, port, balancer = "EKCO Journal Disk Usage", "EKCO Port 31880", "EKCO Load Balancer Port 6444"
	text := content(t, "../../deploy/kurl/host-preflight.yaml")
	preflight, err := template.New("").Delims("{{kurl", "}}").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	withBalancer := &ekcoFields{EnableInternalLoadBalancer: true}
	upgrade, secondary := hostOf(withBalancer), hostOf(withBalancer)
	upgrade.IsUpgrade = true
	secondary.IsPrimary, secondary.IsJoin = false, true
	upgradeWithoutSection := hostOf(nil)
	upgradeWithoutSection.IsUpgrade = true
	for name, test := range map[string]struct {
		host host
		want []string
	}{
		"no section ekco":            {hostOf(nil), []string{disk, port}},
		"no load balancer":           {hostOf(&ekcoFields{}), []string{disk, port}},
		"the internal load balancer": {hostOf(withBalancer), []string{disk, port, balancer}},
		"an upgrade":                 {upgrade, []string{disk}},
		"… without section ekco":     {upgradeWithoutSection, []string{disk}},
		"a secondary that joins":     {secondary, []string{port, balancer}},
	} {
		var rendered strings.Builder
		if err := preflight.Execute(&rendered, test.host); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got struct {
			Kind string
			Spec struct{ Collectors, Analyzers []map[string]check }
		}
		if err := yaml.Unmarshal([]byte(rendered.String()), &got); err != nil || got.Kind != "HostPreflight" {
			t.Errorf("%s: kind %q, %v", name, got.Kind, err)
			continue
		}
		if diff := cmp.Diff(test.want, included(t, got.Spec.Collectors)); diff != "" {
			t.Errorf("%s: collectors (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.want, included(t, got.Spec.Analyzers)); diff != "" {
			t.Errorf("%s: analyzers (-want +got):\n%s", name, diff)
		}
		for _, collector := range got.Spec.Collectors {
			for kind, c := range collector {
				if want := map[string]check{disk: {Path: "/var/lib/ekco"}, port: {Port: 31880}, balancer: {Port: 6444}}[c.CollectorName]; c.Path != want.Path || c.Port != want.Port {
					t.Errorf("%s: %s %q reads path %q, port %d", name, kind, c.CollectorName, c.Path, c.Port)
				}
			}
		}
		for _, analyzer := range got.Spec.Analyzers {
			if c, is := analyzer["diskUsage"]; is && (c.Outcomes[0]["fail"]["when"] != "available < 1Gi" || c.Outcomes[1]["warn"]["when"] != "available < 3Gi") {
				t.Errorf("%s: the limits of the disk are %v", name, c.Outcomes)
			}
			for kind, c := range analyzer {
				if c.CheckName != c.CollectorName || len(c.Outcomes) < 3 {
					t.Errorf("%s: %s %q of %q has %d outcomes", name, kind, c.CheckName, c.CollectorName, len(c.Outcomes))
				}
			}
		}
	}
}

// check is a collector or an analyzer.
type check struct {
	CheckName, CollectorName, Exclude, Path string
	Port                                    int
	Outcomes                                []map[string]map[string]string
}

// included returns the names of the checks that kURL does not leave out.
func included(t *testing.T, checks []map[string]check) (names []string) {
	t.Helper()
	for _, one := range checks {
		for _, c := range one {
			switch c.Exclude {
			case "false":
				names = append(names, c.CollectorName)
			case "true":
			default:
				t.Errorf("%s has exclude: %q", c.CollectorName, c.Exclude)
			}
		}
	}
	return names
}
