package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/nodereport"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// NodeReports has the reports of several nodes.
type NodeReports struct {
	// Complete is true if nothing is missing.
	Complete bool         `json:"complete"`
	Nodes    []NodeReport `json:"nodes"`
}

// NodeReport has the facts of a node.
type NodeReport struct {
	Node string `json:"node"`
	// Action is the id of the report's action. At is when the action ended.
	Action           string    `json:"action,omitempty"`
	At               time.Time `json:"at,omitzero"`
	Kernel           string    `json:"kernel,omitempty"`
	Kubelet          string    `json:"kubelet,omitempty"`
	ContainerRuntime string    `json:"container_runtime,omitempty"`
	OSImage          string    `json:"os_image,omitempty"`
	// ClockAhead is how far the node's clock is ahead of the API server's clock.
	ClockAhead          *journal.Duration        `json:"clock_ahead,omitempty"`
	Disks               []nodereport.Disk        `json:"disks,omitempty"`
	Certificates        []nodereport.Certificate `json:"certificates,omitempty"`
	OmittedCertificates int                      `json:"more_certificates,omitempty"`
	Ceph                []nodereport.Mount       `json:"ceph,omitempty"`
	OmittedCephMounts   int                      `json:"more_ceph,omitempty"`
	// Missing lists the missing facts with the reasons. Looked is true if the program ran on the node.
	Missing []nodereport.Missing `json:"missing,omitempty"`
	Looked  bool                 `json:"looked"`
}

// NodeReportFormats returns the output formats.
func NodeReportFormats() []string { return []string{"table", "wide", "json", "yaml"} }

// WriteNodeReports writes reports in the given format. now is the present time.
func WriteNodeReports(w io.Writer, reports NodeReports, format string, now time.Time, color bool) error {
	if format == "json" || format == "yaml" {
		return Value(w, reports, format)
	}
	s := style{color}
	lines := nodeReportTable(reports.Nodes, now, s)
	if format == "wide" {
		lines = append(lines, certificateTable(reports.Nodes, now, s)...)
		lines = append(lines, mountTable(reports.Nodes, s)...)
	}
	lines = append(lines, missingLines(reports.Nodes, s)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func nodeReportTable(nodes []NodeReport, now time.Time, s style) []string {
	rows := [][]cell{headingCells("NODE", "KERNEL", "KUBELET", "RUNTIME", "CLOCK", "EKCO FREE", "ETCD FREE", "CERTIFICATES", "CEPH")}
	for i := range nodes {
		n := &nodes[i]
		rows = append(rows, []cell{
			{text: Clean(n.Node)},
			{text: orDash(Clean(n.Kernel))},
			{text: orDash(Clean(n.Kubelet))},
			{text: orDash(Clean(n.ContainerRuntime))},
			n.clockCell(), n.freeSpaceCell("/var/lib/ekco"), n.freeSpaceCell("/var/lib/etcd"), n.expiryCell(now), n.volumesCell(),
		})
	}
	return alignCells(rows, s)
}

func headingCells(names ...string) []cell {
	cells := make([]cell, len(names))
	for i, name := range names {
		cells[i].text = name
	}
	return cells
}

// maxClockDrift is the difference above which the table marks a node's clock. Certificates and leases depend on the
// clock.
const maxClockDrift = 2 * time.Second

func (n *NodeReport) clockCell() cell {
	if n.ClockAhead == nil {
		return cell{text: "-"}
	}
	ahead := time.Duration(*n.ClockAhead)
	switch {
	case ahead == 0:
		return cell{text: "0s"}
	case ahead < 0:
		return cell{text: "-" + words.Span(-ahead), tone: toneIf(-ahead > maxClockDrift)}
	}
	return cell{text: "+" + words.Span(ahead), tone: toneIf(ahead > maxClockDrift)}
}

func toneIf(needsAttention bool) tone {
	if needsAttention {
		return doubtful
	}
	return normal
}

func (n *NodeReport) freeSpaceCell(directory string) cell {
	i := slices.IndexFunc(n.Disks, func(d nodereport.Disk) bool { return d.Directory == directory })
	if i < 0 {
		return cell{text: "-"}
	}
	disk := n.Disks[i]
	return cell{text: diskSize(disk.Free) + " of " + diskSize(disk.Size), tone: toneIf(disk.Free < disk.Size/10)}
}

func diskSize(bytes uint64) string { return formatSize(int64(min(bytes, 1<<62))) } //nolint:gosec // min bounds it

// expiresSoon is how long before its expiry a certificate is marked. EKCO renews its certificates earlier.
const expiresSoon = 30 * 24 * time.Hour

func (n *NodeReport) expiryCell(now time.Time) cell {
	if len(n.Certificates) == 0 {
		return cell{text: "-"}
	}
	first := slices.MinFunc(n.Certificates, func(a, b nodereport.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	text := fmt.Sprintf("%d, the first %s", len(n.Certificates)+n.OmittedCertificates, expiresText(first.NotAfter, now))
	return cell{text: text, tone: toneOfExpiry(first.NotAfter, now)}
}

func expiresText(at, now time.Time) string {
	if !at.After(now) {
		return "expired " + at.UTC().Format(time.DateOnly)
	}
	return fmt.Sprintf("expires %s (in %s)", at.UTC().Format(time.DateOnly), words.Span(at.Sub(now).Truncate(time.Minute)))
}

func toneOfExpiry(at, now time.Time) tone {
	if !at.After(now) {
		return bad
	}
	return toneIf(at.Sub(now) < expiresSoon)
}

func (n *NodeReport) volumesCell() cell {
	switch count := len(n.Ceph) + n.OmittedCephMounts; {
	case !n.Looked:
		return cell{text: "-"}
	case count == 0:
		return cell{text: "none"}
	default:
		return cell{text: words.Count(count, "volume")}
	}
}

func certificateTable(nodes []NodeReport, now time.Time, s style) []string {
	rows := [][]cell{headingCells("NODE", "CERTIFICATE", "SUBJECT", "EXPIRES")}
	for i := range nodes {
		for _, c := range nodes[i].Certificates {
			rows = append(rows, []cell{
				{text: Clean(nodes[i].Node)},
				{text: Clean(c.Path)},
				{text: orDash(Clean(c.Subject))},
				{text: expiresText(c.NotAfter, now), tone: toneOfExpiry(c.NotAfter, now)},
			})
		}
		if more := nodes[i].OmittedCertificates; more > 0 {
			rows = append(rows, headingCells(Clean(nodes[i].Node), fmt.Sprintf("and %d more", more)))
		}
	}
	return tableBelow(rows, s)
}

func mountTable(nodes []NodeReport, s style) []string {
	rows := [][]cell{headingCells("NODE", "CEPH VOLUME", "TYPE", "MOUNTED AT")}
	for i := range nodes {
		for _, m := range nodes[i].Ceph {
			rows = append(rows, headingCells(Clean(nodes[i].Node), Clean(m.Source), Clean(m.Type), Clean(m.Target)))
		}
		if more := nodes[i].OmittedCephMounts; more > 0 {
			rows = append(rows, headingCells(Clean(nodes[i].Node), fmt.Sprintf("and %d more", more)))
		}
	}
	return tableBelow(rows, s)
}

// tableBelow separates a table from the lines above it. It omits a table without rows.
func tableBelow(rows [][]cell, s style) []string {
	if len(rows) < 2 {
		return nil
	}
	return append([]string{""}, alignCells(rows, s)...)
}

func missingLines(nodes []NodeReport, s style) []string {
	rows := [][]cell{headingCells("NODE", "MISSING", "WHY")}
	for i := range nodes {
		for _, m := range nodes[i].Missing {
			rows = append(rows, []cell{{text: Clean(nodes[i].Node)}, {text: Clean(m.What)}, {text: Clean(m.Why), tone: doubtful}})
		}
	}
	return tableBelow(rows, s)
}
