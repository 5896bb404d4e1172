package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Version is a version of Ceph, such as 16.2.15 pacific.
type Version struct {
	Major, Minor, Patch int
	// Release is the release's name, empty if Ceph did not report it.
	Release string
}

// String returns "16.2.15 pacific".
func (v Version) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d.%d.%d %s", v.Major, v.Minor, v.Patch, v.Release))
}

// Status is the health status that Ceph reports.
type Status string

// The statuses.
const (
	HealthOK   Status = "HEALTH_OK"
	HealthWarn Status = "HEALTH_WARN"
	HealthErr  Status = "HEALTH_ERR"
)

// Health is the health that the monitors report.
type Health struct {
	Status Status
	// Checks are the reasons for a status other than [HealthOK], by code.
	Checks []Check
	// MgrActive reports whether the monitors see an active mgr. They notice a crashed mgr only after 30 s
	// (Ceph's mon_mgr_beacon_grace).
	MgrActive bool
	// Quorum has the names of the monitors in the quorum.
	Quorum []string
	// PGs counts placement groups by state, such as "active+clean". The mgr counts them: the numbers are outdated for
	// some seconds after the loss of an OSD, and while there is no mgr.
	PGs map[string]int
}

// Inactive counts the placement groups that Ceph does not serve: they are not active, or stale. Like PGs, the
// number can be old.
func (h Health) Inactive() int {
	inactive := 0
	for state, count := range h.PGs {
		parsed := strings.Split(state, "+")
		if !slices.Contains(parsed, "active") || slices.Contains(parsed, "stale") {
			inactive += count
		}
	}
	return inactive
}

// Check is one reason for a status.
type Check struct {
	// Code is Ceph's name of the check, such as OSD_DOWN.
	Code     string
	Severity Status
	// Message is Ceph's summary of the check.
	Message string
	Muted   bool
}

// String returns the status and its reasons in one line.
func (h Health) String() string {
	var text strings.Builder
	text.WriteString(string(h.Status))
	separator := ": "
	for _, check := range h.Checks {
		fmt.Fprintf(&text, "%s%s (%s)", separator, check.Message, check.Code)
		separator = "; "
	}
	return text.String()
}

// Clean reports whether every placement group is active and clean. It returns true if there are no placement groups.
func (h Health) Clean() bool {
	for state, count := range h.PGs {
		if count > 0 && !slices.Contains(cleanStates, state) {
			return false
		}
	}
	return true
}

// cleanStates are the states of a placement group with all its copies. A scrub only reads data.
var cleanStates = []string{"active+clean", "active+clean+scrubbing", "active+clean+scrubbing+deep"}

// Tree is the part of the CRUSH tree that EKCO needs.
type Tree struct {
	// FSID identifies the cluster.
	FSID string
	// Hosts are sorted by name, OSDs by id.
	Hosts []Host
	OSDs  []OSD
}

// Host is a bucket of type host.
type Host struct {
	Name string
	// OSDs are sorted.
	OSDs []int
}

// Ref identifies an OSD: Ceph reuses the ids of removed OSDs, but never their UUIDs.
type Ref struct {
	ID int `json:"id"`
	// UUID is empty if unknown; then only the id identifies the OSD.
	UUID string `json:"uuid,omitempty"`
}

// IsOther reports whether two OSDs with the same id are known to be different ones.
func (r Ref) IsOther(osd Ref) bool { return r.UUID != "" && osd.UUID != "" && r.UUID != osd.UUID }

// OSD is one object storage daemon.
type OSD struct {
	Ref
	// Host is the name of the OSD's CRUSH host. It is empty if the OSD has no CRUSH host.
	Host string
	// Exists reports whether the OSD map has the OSD. If not, only the CRUSH map has it.
	Exists bool
	Up     bool
	// Reweight is 0 if the OSD is out, 1 if it is fully in.
	Reweight float64
	// Weight is the CRUSH weight. It is the OSD's size in TiB, unless an administrator has set it. With weight 0 the
	// OSD gets no data.
	Weight float64
	// Stray OSDs are in the OSD map but not in the CRUSH tree.
	Stray       bool
	DeviceClass string
}

// In reports whether Ceph puts data on the OSD.
func (o OSD) In() bool { return o.Reweight > 0 }

// OSD returns the OSD with the id, and reports whether it exists.
func (t Tree) OSD(id int) (OSD, bool) {
	i, found := slices.BinarySearchFunc(t.OSDs, id, func(o OSD, id int) int { return o.ID - id })
	if !found {
		return OSD{}, false
	}
	return t.OSDs[i], true
}

// Host returns the host with exactly this name, and reports whether it exists.
func (t Tree) Host(name string) (Host, bool) {
	i, found := slices.BinarySearchFunc(t.Hosts, name, func(h Host, name string) int { return strings.Compare(h.Name, name) })
	if !found {
		return Host{}, false
	}
	return t.Hosts[i], true
}

// HostOfNode returns the CRUSH host of the machine with the hostname. The name of the CRUSH host is the hostname,
// or the hostname with dashes instead of dots, as Rook writes it.
func (t Tree) HostOfNode(hostname string) (Host, bool) {
	if host, ok := t.Host(CrushName(hostname)); ok {
		return host, true
	}
	return t.Host(hostname)
}

// CrushName returns Rook's name for a machine in the CRUSH map: Rook replaces dots with dashes.
func CrushName(hostname string) string { return strings.ReplaceAll(hostname, ".", "-") }

// Safety is the answer of [API.SafeToDestroy].
type Safety struct {
	// Safe OSDs hold only data that other OSDs also hold.
	Safe []int
	// Active OSDs serve placement groups, whose data must move first.
	Active []int
	// StoredPGs are OSDs that may have data of placement groups that are not active now.
	StoredPGs []int
	// MissingStats are OSDs without statistics. Ask again later.
	MissingStats []int

	asked []int
}

// All reports whether all queried OSDs are safe.
func (s Safety) All() bool {
	for _, id := range s.asked {
		if !slices.Contains(s.Safe, id) {
			return false
		}
	}
	return true
}

// Reason returns the reason why an OSD is not safe, or "" if all are.
func (s Safety) Reason() string {
	if s.All() {
		return ""
	}
	var reasons []string
	for _, group := range []struct {
		ids []int
		why string
	}{
		{s.Active, "still mapped to placement groups, whose data must move first"},
		{s.StoredPGs, "holding placement groups that are not active"},
		{s.MissingStats, "without statistics yet"},
	} {
		if len(group.ids) > 0 {
			reasons = append(reasons, Names(group.ids...)+" "+group.why)
		}
	}
	if len(reasons) == 0 {
		return "Ceph does not report " + Names(s.asked...) + " as safe"
	}
	return strings.Join(reasons, "; ")
}

// NewSafety returns a Safety for tests and simulations: it marks each queried OSD that is not in safe as active.
func NewSafety(asked, safe []int) Safety {
	s := Safety{asked: slices.Clone(asked)}
	for _, id := range asked {
		if slices.Contains(safe, id) {
			s.Safe = append(s.Safe, id)
		} else {
			s.Active = append(s.Active, id)
		}
	}
	return s
}

// Names returns the names of OSDs, such as "osd.3, osd.12".
func Names(ids ...int) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = name(id)
	}
	return strings.Join(names, ", ")
}
