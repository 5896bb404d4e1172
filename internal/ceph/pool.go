package ceph

// Pool is a pool of Ceph.
type Pool struct {
	ID   int
	Name string
	// Size is the number of copies (of an erasure-coded pool, parts). Ceph serves the pool with MinSize or
	// more.
	Size, MinSize int
	// PGMin is the minimum number of placement groups; 0 for no minimum.
	PGMin int
	// Erasure is set for an erasure-coded pool, which keeps coded parts instead of copies.
	Erasure bool
	// PGs is how many placement groups the pool has.
	PGs int
	// Domain is the type of CRUSH bucket that no two copies share, such as "host" or "osd". It is empty if the
	// pool's CRUSH rule is not a plain one.
	Domain string
	// DeviceClass is the class of the OSDs that the pool may use; empty for all OSDs.
	DeviceClass string
}

// What a [Pool.Domain] can be.
const (
	DomainHost = "host"
	DomainOSD  = "osd"
)

// PG is one placement group, from the mgr's report, which is some seconds old.
type PG struct {
	// ID is such as "2.1f", where 2 is the id of the pool.
	ID   string
	Pool int
	// State is such as "active+undersized+degraded".
	State string
	// Acting are the OSDs that serve it. One can be listed twice. A missing copy has no entry.
	Acting []int
}
