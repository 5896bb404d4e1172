package ceph

// Pool is a pool of Ceph.
type Pool struct {
	ID   int
	Name string
	// Size is the number of copies, or of parts for an erasure-coded pool. Ceph serves the pool if at least MinSize
	// of them are available.
	Size, MinSize int
	// PGMin is the minimum number of placement groups; 0 for no minimum.
	PGMin int
	// Erasure is set for an erasure-coded pool, which keeps coded parts instead of copies.
	Erasure bool
	// PGs is the number of placement groups.
	PGs int
	// Domain is the failure domain: the type of CRUSH bucket that has at most one copy, such as "host" or "osd". It is
	// empty if EKCO cannot read the pool's CRUSH rule.
	Domain string
	// DeviceClass is the class of the OSDs that the pool may use; empty for all OSDs.
	DeviceClass string
}

// The values of [Pool.Domain].
const (
	DomainHost = "host"
	DomainOSD  = "osd"
)

// PG is one placement group in the mgr's report. The report is some seconds old.
type PG struct {
	// ID is, for example, "2.1f", where 2 is the id of the pool.
	ID   string
	Pool int
	// State is, for example, "active+undersized+degraded".
	State string
	// Acting are the ids of the OSDs that serve the group. An id can be listed twice. A missing copy has no entry.
	Acting []int
}
