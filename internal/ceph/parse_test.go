package ceph

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const recordings = "../../testdata/ceph"

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(recordings, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheTreeOfARealCephIsRead(t *testing.T) {
	up := func(id int, host string) OSD {
		return OSD{Ref: Ref{ID: id}, Host: host, Exists: true, Up: true, Reweight: 1, Weight: 1, DeviceClass: "hdd"}
	}
	lost := func(id int, reweight float64) OSD {
		osd := up(id, "node2")
		osd.Up, osd.Reweight = false, reweight
		return osd
	}
	hosts := func(node2 ...int) []Host {
		return []Host{{"node1", []int{8}}, {"node2", node2}, {"node3-example-com", []int{12}}, {"node4", []int{13}}}
	}
	others := []OSD{up(12, "node3-example-com"), up(13, "node4")}
	for name, want := range map[string]Tree{
		"osd-tree-ok": {"", hosts(9, 10, 11), append([]OSD{
			up(8, "node1"), up(9, "node2"), up(10, "node2"), up(11, "node2"),
		}, others...)},
		"osd-tree-host-down": {"", hosts(9, 10, 11), append([]OSD{
			up(8, "node1"), lost(9, 1), lost(10, 1), lost(11, 1),
		}, others...)},
		"osd-tree-out": {"", hosts(9, 10, 11), append([]OSD{
			up(8, "node1"), lost(9, 0), lost(10, 0), lost(11, 0),
		}, others...)},
		"osd-tree-leftovers": {"", hosts(9, 11), append([]OSD{
			up(8, "node1"),
			{Ref: Ref{ID: 9}, Host: "node2", Weight: 1, DeviceClass: "hdd"},
			{Ref: Ref{ID: 10}, Exists: true, Stray: true},
			lost(11, 0),
		}, append(others, OSD{Ref: Ref{ID: 123}, Exists: true, Stray: true, Reweight: 1})...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTree(recorded(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read wrongly (- wanted, + got):\n%s", diff)
			}
		})
	}
}

func TestAHostListedUnderTwoRootsIsOneHost(t *testing.T) {
	tree, err := parseTree([]byte(`{"nodes":[
		{"id":-1,"name":"default","type":"root","children":[-2]},{"id":-2,"name":"a","type":"host","children":[0]},
		{"id":0,"type":"osd","exists":1,"status":"up","reweight":1},
		{"id":-3,"name":"other","type":"root","children":[-2]},{"id":-2,"name":"a","type":"host","children":[0]},
		{"id":0,"type":"osd","exists":1,"status":"up","reweight":1}],"stray":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Host{{"a", []int{0}}}, tree.Hosts); diff != "" {
		t.Error(diff)
	}
	if len(tree.OSDs) != 1 {
		t.Errorf("%d OSDs", len(tree.OSDs))
	}
}

func TestTheHostOfANodeIsFoundByTheNameRookGivesIt(t *testing.T) {
	tree, err := parseTree(recorded(t, "osd-tree-ok"))
	if err != nil {
		t.Fatal(err)
	}
	for hostname, want := range map[string]string{
		"node3.example.com": "node3-example-com", "node3-example-com": "node3-example-com", "node1": "node1",
		"node": "", "example.com": "", "": "",
	} {
		if host, _ := tree.HostOfNode(hostname); host.Name != want {
			t.Errorf("the host of %q is %q, want %q", hostname, host.Name, want)
		}
	}
}

func TestTheHealthOfARealCephIsRead(t *testing.T) {
	hostDown := []Check{
		{Code: "OSD_DOWN", Severity: HealthWarn, Message: "3 osds down"},
		{Code: "OSD_HOST_DOWN", Severity: HealthWarn, Message: "1 host (3 osds) down"},
	}
	for name, want := range map[string]Health{
		"status-ok":        {Status: HealthOK, MgrActive: true},
		"status-host-down": {Status: HealthWarn, MgrActive: true, Checks: hostDown},
		"status-no-mgr": {Status: HealthWarn, Checks: []Check{
			{Code: "OSD_DOWN", Severity: HealthWarn, Message: "2 osds down"},
			{Code: "OSD_HOST_DOWN", Severity: HealthWarn, Message: "3 hosts (4 osds) down"},
			{Code: "OSD_ORPHAN", Severity: HealthWarn, Message: "1 osds exist in the crush map but not in the osdmap"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseHealth(recorded(t, name))
			if err != nil {
				t.Fatal(err)
			}
			want.Quorum = []string{"a"}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Health{}, "PGs")); diff != "" {
				t.Errorf("read wrongly (- wanted, + got):\n%s", diff)
			}
			if got.PGs["active+clean"] == 0 {
				t.Errorf("placement groups %v", got.PGs)
			}
		})
	}
}

func TestHealthIsToldInOneLine(t *testing.T) {
	health, err := parseHealth(recorded(t, "status-host-down"))
	if err != nil {
		t.Fatal(err)
	}
	want := "HEALTH_WARN: 3 osds down (OSD_DOWN); 1 host (3 osds) down (OSD_HOST_DOWN)"
	if got := health.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyWholeDataIsClean(t *testing.T) {
	for state, want := range map[string]bool{
		"active+clean": true, "active+clean+scrubbing+deep": true,
		"active+undersized+degraded": false, "unknown": false, "active+clean+inconsistent": false,
	} {
		if got := (Health{PGs: map[string]int{"active+clean": 3, state: 1}}).Clean(); got != want {
			t.Errorf("%s is clean: %v", state, got)
		}
	}
	if !(Health{PGs: map[string]int{"unknown": 0}}).Clean() {
		t.Error("no placement group is not clean")
	}
}

func TestSafetyIsReadFromTheAnswerAndNotFromTheExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		asked  []int
		reason string
	}{
		"safe-ok":         {[]int{9, 10, 11}, ""},
		"safe-active":     {[]int{9, 10, 11}, "osd.9, osd.10, osd.11 still mapped to placement groups, whose data must move first"},
		"safe-unknown-id": {[]int{77, 9}, "osd.9 still mapped to placement groups, whose data must move first"},
		"safe-missing":    {[]int{9, 10, 11}, "osd.9, osd.10, osd.11 without statistics yet"},
	} {
		t.Run(name, func(t *testing.T) {
			safety, err := parseSafety(recorded(t, name))
			if err != nil {
				t.Fatal(err)
			}
			safety.asked = test.asked
			if safety.Reason() != test.reason || safety.All() != (test.reason == "") {
				t.Errorf("all may go: %v; reason %q", safety.All(), safety.Reason())
			}
		})
	}
}

func TestAnOSDThatCephDoesNotMentionIsNotSafe(t *testing.T) {
	safety, err := parseSafety([]byte(`{"safe_to_destroy":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	safety.asked = []int{1, 2}
	if safety.All() || safety.Reason() != "Ceph does not report osd.1, osd.2 as safe" {
		t.Errorf("all may go: %v; reason %q", safety.All(), safety.Reason())
	}
}

func TestVersionsAreRead(t *testing.T) {
	for answer, want := range map[string]Version{
		string(recorded(t, "version")): {16, 2, 15, "pacific"},
		`{"version":"ceph version 14.2.21 (5ef401921d7a88aea18ec7558f7f9374ebd8f5a6) nautilus (stable)"}`: {14, 2, 21, "nautilus"},
		`{"version":"ceph version 16.2.10-248.el8cp (0edb63afd9bd3edb333364f2e0031b77e62f4896) pacific"}`: {16, 2, 10, "pacific"},
		`{"version":"ceph version 17.2.6"}`: {17, 2, 6, ""},
	} {
		got, err := parseVersion([]byte(answer))
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
}

func TestWhatIsNoAnswerIsAnErrorAndNotAnEmptyCluster(t *testing.T) {
	for _, answer := range []string{"", "\n", "null", "{}", "[]", `{"nodes":null}`, `{"nodes":{}}`, `{"nodes":[{"id":"x"}]}`, "Error"} {
		if _, err := parseTree([]byte(answer)); err == nil {
			t.Errorf("%q is a tree", answer)
		}
		if _, err := parseUUIDs([]byte(answer)); err == nil {
			t.Errorf("%q is a list of OSDs", answer)
		}
		if _, err := parseHealth([]byte(answer)); err == nil {
			t.Errorf("%q is a health", answer)
		}
		if _, err := parseSafety([]byte(answer)); err == nil {
			t.Errorf("%q is a safety", answer)
		}
		if _, err := parseVersion([]byte(answer)); err == nil {
			t.Errorf("%q is a version", answer)
		}
	}
}

func FuzzParsers(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no recordings", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if tree, err := parseTree(answer); err == nil {
			checkTree(t, tree)
		}
		if health, err := parseHealth(answer); err == nil && health.Status == "" {
			t.Error("health without a status")
		}
		if safety, err := parseSafety(answer); err == nil {
			safety.asked = append([]int{1}, safety.Active...)
			if safety.All() != (safety.Reason() == "") {
				t.Errorf("unsafe without a reason: %+v", safety)
			}
		}
		_, _ = parseUUIDs(answer)
		_, _ = parseVersion(answer)
	})
}

// checkTree checks that hosts and OSDs agree, whatever Ceph said.
func checkTree(t *testing.T, tree Tree) {
	for _, host := range tree.Hosts {
		if found, ok := tree.Host(host.Name); !ok || !cmp.Equal(found, host) {
			t.Errorf("host %q is not found by its name", host.Name)
		}
		for _, id := range host.OSDs {
			if osd, ok := tree.OSD(id); !ok || osd.Host == "" {
				t.Errorf("osd.%d of host %q: %+v", id, host.Name, osd)
			}
		}
	}
}
