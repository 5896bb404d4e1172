package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Version is a version of Ceph, such as 16.2.15 pacific.
type Version struct {
	Major, Minor, Patch int
	// Release is the release's name, empty when Ceph did not say.
	Release string
}

// String returns "16.2.15 pacific".
func (v Version) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d.%d.%d %s", v.Major, v.Minor, v.Patch, v.Release))
}

// Status is Ceph's opinion of itself.
type Status string

// The statuses.
const (
	HealthOK   Status = "HEALTH_OK"
	HealthWarn Status = "HEALTH_WARN"
	HealthErr  Status = "HEALTH_ERR"
)

// Health is what the monitors say about the cluster.
type Health struct {
	Status Status
	// Checks are the reasons for a status other than [HealthOK], by code.
	Checks []Check
	// MgrActive is what the monitors believe: they notice a mgr that died without
	// a word only after 30 s (mon_mgr_beacon_grace).
	MgrActive bool
	// Monitors is how many there should be, Quorum the names of those that agree.
	Monitors int
	Quorum   []string
	// PGs counts placement groups by state, such as "active+clean". The mgr
	// counts them: for some seconds after an OSD is lost, and as long as there is
	// no mgr, the numbers are those of before.
	PGs map[string]int
}

// Inactive counts the placement groups of which no running OSD is known to have
// the data: those that are not active, or stale. Its limits are those of PGs.
func (h Health) Inactive() int {
	inactive := 0
	for state, count := range h.PGs {
		said := strings.Split(state, "+")
		if !slices.Contains(said, "active") || slices.Contains(said, "stale") {
			inactive += count
		}
	}
	return inactive
}

// Check is one reason for a status.
type Check struct {
	// Code is Ceph's, such as OSD_DOWN.
	Code     string
	Severity Status
	// Message is for people.
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

// Clean reports whether every placement group is active and clean. It is true
// when there are none.
func (h Health) Clean() bool {
	for state, count := range h.PGs {
		if count > 0 && !slices.Contains(cleanStates, state) {
			return false
		}
	}
	return true
}

// cleanStates are those of whole data; a scrub only reads it.
var cleanStates = []string{"active+clean", "active+clean+scrubbing", "active+clean+scrubbing+deep"}

// Tree is the CRUSH tree as far as EKCO needs it.
type Tree struct {
	// FSID tells the cluster from every other one.
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

// Ref names an OSD beyond doubt: Ceph gives the ids of removed OSDs again, the
// UUIDs never.
type Ref struct {
	ID int `json:"id"`
	// UUID is empty when it is not known; then the id alone has to do.
	UUID string `json:"uuid,omitempty"`
}

// IsOther reports whether two OSDs of the same id are known to be different.
func (r Ref) IsOther(osd Ref) bool { return r.UUID != "" && osd.UUID != "" && r.UUID != osd.UUID }

// OSD is one object storage daemon.
type OSD struct {
	Ref
	// Host is the CRUSH host it is in; empty when it is in none.
	Host string
	// Exists is false when only the CRUSH map still has it.
	Exists bool
	Up     bool
	// Reweight is 0 when the OSD is out, 1 when it is fully in.
	Reweight float64
	// Weight is how much of the data CRUSH gives it among others, by its size in TiB unless
	// somebody set it; with 0 it gets none.
	Weight float64
	// Stray OSDs are in the OSD map and nowhere in the CRUSH tree.
	Stray       bool
	DeviceClass string
}

// In reports whether the OSD is to hold data.
func (o OSD) In() bool { return o.Reweight > 0 }

// OSD returns the OSD of that id.
func (t Tree) OSD(id int) (OSD, bool) {
	i, found := slices.BinarySearchFunc(t.OSDs, id, func(o OSD, id int) int { return o.ID - id })
	if !found {
		return OSD{}, false
	}
	return t.OSDs[i], true
}

// Host returns the host of exactly that name.
func (t Tree) Host(name string) (Host, bool) {
	i, found := slices.BinarySearchFunc(t.Hosts, name, func(h Host, name string) int { return strings.Compare(h.Name, name) })
	if !found {
		return Host{}, false
	}
	return t.Hosts[i], true
}

// HostOfNode returns the CRUSH host of the machine with that hostname: of that
// name or, as Rook names it, with dashes for dots.
func (t Tree) HostOfNode(hostname string) (Host, bool) {
	if host, ok := t.Host(CrushName(hostname)); ok {
		return host, true
	}
	return t.Host(hostname)
}

// CrushName returns what Rook calls a machine in the CRUSH map, where dots are
// not allowed.
func CrushName(hostname string) string { return strings.ReplaceAll(hostname, ".", "-") }

// Safety says which OSDs may go.
type Safety struct {
	// Safe OSDs hold nothing that is not elsewhere too.
	Safe []int
	// Active OSDs are mapped to placement groups: data is still to move away.
	Active []int
	// StoredPGs of OSDs may be needed and are not active now.
	StoredPGs []int
	// MissingStats of OSDs keep Ceph from telling: ask again later.
	MissingStats []int

	asked []int
}

// All reports whether every OSD that was asked about may go.
func (s Safety) All() bool {
	for _, id := range s.asked {
		if !slices.Contains(s.Safe, id) {
			return false
		}
	}
	return true
}

// Reason says, for people, why not all may go; empty when they may.
func (s Safety) Reason() string {
	if s.All() {
		return ""
	}
	var reasons []string
	for _, group := range []struct {
		ids []int
		why string
	}{
		{s.Active, "still mapped to placement groups whose data is to move away"},
		{s.StoredPGs, "holding placement groups that are not elsewhere"},
		{s.MissingStats, "not known well enough yet"},
	} {
		if len(group.ids) > 0 {
			reasons = append(reasons, Names(group.ids...)+" "+group.why)
		}
	}
	if len(reasons) == 0 {
		return "Ceph does not call " + Names(s.asked...) + " safe to destroy"
	}
	return strings.Join(reasons, "; ")
}

// NewSafety returns the answer to a question about the given OSDs of which
// those are safe, and the rest is active. It is for implementations of [API]
// that simulate Ceph; what Ceph itself answers is parsed.
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

// Names returns "osd.3, osd.12".
func Names(ids ...int) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = name(id)
	}
	return strings.Join(names, ", ")
}
