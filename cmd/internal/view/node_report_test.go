package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/internal/nodereport"
	"github.com/replicatedhq/ekco/journal"
)

// reportedAt is the time by which reports are shown.
var reportedAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func reportText(t *testing.T, format string, color bool, nodes ...view.NodeReport) string {
	t.Helper()
	var out bytes.Buffer
	if err := view.WriteNodeReports(&out, view.NodeReports{Nodes: nodes}, format, reportedAt, color); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func ahead(d time.Duration) *journal.Duration {
	of := journal.Duration(d)
	return &of
}

func expiring(in time.Duration) []nodereport.Certificate {
	return []nodereport.Certificate{{Path: "/a.crt", NotAfter: reportedAt.AddDate(1, 0, 0)}, {Path: "/b.crt", Subject: "b", NotAfter: reportedAt.Add(in)}}
}

func TestWhatIsWorthALookInAReportIsInAColour(t *testing.T) {
	const yellow, red = "\x1b[33m", "\x1b[31m"
	for name, test := range map[string]struct {
		report view.NodeReport
		shows  string
		colour string
	}{
		"a clock that is right":         {view.NodeReport{ClockAhead: ahead(0)}, "0s", ""},
		"a clock that is a little fast": {view.NodeReport{ClockAhead: ahead(2 * time.Second)}, "+2s", ""},
		"a clock that is fast":          {view.NodeReport{ClockAhead: ahead(3 * time.Second)}, "+3s", yellow},
		"a clock that is slow":          {view.NodeReport{ClockAhead: ahead(-90 * time.Second)}, "-1m30s", yellow},
		"room on the disk":              {view.NodeReport{Disks: []nodereport.Disk{{Directory: "/var/lib/etcd", Size: 10 << 30, Free: 1 << 30}}}, "1.0 GiB of 10.0 GiB", ""},
		"little room on the disk":       {view.NodeReport{Disks: []nodereport.Disk{{Directory: "/var/lib/ekco", Size: 10 << 30, Free: 1 << 29}}}, "512.0 MiB of 10.0 GiB", yellow},
		"a certificate with time":       {view.NodeReport{Certificates: expiring(31 * 24 * time.Hour)}, "2, the first expires 2026-12-22 (in 31d)", ""},
		"a certificate that is due":     {view.NodeReport{Certificates: expiring(29 * 24 * time.Hour)}, "2, the first expires 2026-12-20 (in 29d)", yellow},
		"a certificate that is over":    {view.NodeReport{Certificates: expiring(0), OmittedCertificates: 3}, "5, the first expired 2026-11-21", red},
		"what is missing":               {view.NodeReport{Missing: []nodereport.Missing{{What: "report", Why: "it is away"}}}, "it is away", yellow},
	} {
		test.report.Node = "n"
		if got := reportText(t, "table", true, test.report); !strings.Contains(got, test.colour+test.shows) || test.colour == "" && strings.Contains(got, "\x1b") {
			t.Errorf("%s: it shows %q, want %q", name, got, test.colour+test.shows)
		}
		if got := reportText(t, "table", false, test.report); !strings.Contains(got, test.shows) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: without colours it shows %q", name, got)
		}
	}
}

func TestAReportTellsNothingFromNotLookedAt(t *testing.T) {
	lines := strings.Split(reportText(t, "table", false, view.NodeReport{Node: "looked", Looked: true}, view.NodeReport{Node: "away"}), "\n")
	if !strings.HasSuffix(lines[1], "none") || !strings.HasSuffix(lines[2], "-") {
		t.Errorf("shown is %q", lines)
	}
}

func TestTheWideReportListsWhatThereIsAndHowMuchMore(t *testing.T) {
	got := reportText(t, "wide", false, view.NodeReport{
		Node: "n", Looked: true, Certificates: expiring(48 * time.Hour), OmittedCertificates: 7, OmittedCephMounts: 2,
		Ceph: []nodereport.Mount{{Source: "10.0.0.1:6789:/", Target: "/var/lib/kubelet/x", Type: "ceph"}},
	})
	for _, want := range []string{
		"n     /a.crt       -        expires 2027-11-21 (in 365d)", "n     /b.crt       b        expires 2026-11-23 (in 48h)", "and 7 more",
		"n     10.0.0.1:6789:/  ceph  /var/lib/kubelet/x", "and 2 more", "3 volumes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it has no %q:\n%s", want, got)
		}
	}
}

func TestAHostileReportCannotSpeakToTheTerminal(t *testing.T) {
	evil := "\x1b[2Jx"
	for _, format := range view.NodeReportFormats() {
		got := reportText(t, format, false, view.NodeReport{
			Node: evil, Kernel: evil, Kubelet: evil, ContainerRuntime: evil, Looked: true,
			Certificates: []nodereport.Certificate{{Path: evil, Subject: evil, NotAfter: reportedAt}},
			Ceph:         []nodereport.Mount{{Source: evil, Target: evil, Type: evil}},
			Missing:      []nodereport.Missing{{What: evil, Why: evil}},
		})
		if strings.Contains(got, "\x1b") {
			t.Errorf("-o %s lets through %q", format, got)
		}
	}
}
