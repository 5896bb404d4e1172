package ceph

// Pool is where data is kept.
type Pool struct {
	ID   int
	Name string
	// Size is how many copies the pool wants (of an erasure-coded one, parts), and
	// MinSize how many there must be for it to be served.
	Size, MinSize int
	// PGMin is how many placement groups it shall have at least; zero for any.
	PGMin int
	// Erasure is set where data is in coded parts instead of copies.
	Erasure bool
	// PGs is how many placement groups the pool has.
	PGs int
	// Domain is the type of CRUSH bucket that no two copies share, such as "host",
	// or "osd". It is empty where the pool's CRUSH rule is not a plain one.
	Domain string
	// DeviceClass is that of the OSDs it may use, empty where it may use all.
	DeviceClass string
}

// What a [Pool.Domain] can be.
const (
	DomainHost = "host"
	DomainOSD  = "osd"
)

// PG is one placement group as the mgr knows it, which is some seconds old.
type PG struct {
	// ID is such as "2.1f", where 2 is the id of the pool.
	ID   string
	Pool int
	// State is such as "active+undersized+degraded".
	State string
	// Acting are the OSDs that serve it. One can be there twice, and none of them
	// is there for a copy that nobody has.
	Acting []int
}
