package ceph

import (
	"context"
	"errors"
	"io"
)

// Sentinel errors of an [API]. Every error of a call wraps at most one.
var (
	// ErrNotFound: Ceph has no such object (exit code 2, ENOENT).
	ErrNotFound = errors.New("not found")
	// ErrAgain: Ceph cannot answer yet (exit code 11, EAGAIN).
	ErrAgain = errors.New("not known yet")
	// ErrBusy: Ceph refuses because the object is in use (exit code 16, EBUSY).
	ErrBusy = errors.New("in use")
	// ErrHostNotEmpty: the CRUSH host still has OSDs (exit code 39, ENOTEMPTY).
	ErrHostNotEmpty = errors.New("the CRUSH host is not empty")
	// ErrOtherOSD: the id belongs to another OSD now. Ceph reuses ids.
	ErrOtherOSD = errors.New("another OSD has this id")
	// ErrUnavailable: Ceph gave no answer. Whether a change happened is unknown.
	ErrUnavailable = errors.New("ceph does not answer")
	// ErrReadOnly: a read-only client was asked for a change. It ran nothing.
	ErrReadOnly = errors.New("this EKCO is read-only, as in a dry run; nothing was changed")
	// ErrInvalid: not a valid id or name. The client ran nothing.
	ErrInvalid = errors.New("invalid argument for ceph")
)

// API has the calls that EKCO uses to read and change a Ceph cluster. Implementations are safe for concurrent use.
// Every call obeys its context and has a timeout. Every call can be repeated without harm.
type API interface {
	Settings
	// Version returns the version of the monitor that answered.
	Version(ctx context.Context) (Version, error)
	// Health returns the health that Ceph reports. It needs a quorum of monitors, but no mgr.
	Health(ctx context.Context) (Health, error)
	// Tree returns all OSDs and CRUSH hosts. It needs no mgr.
	Tree(ctx context.Context) (Tree, error)
	// Pools returns all pools. It needs no mgr.
	Pools(ctx context.Context) ([]Pool, error)
	// Room returns how much data the cluster holds and can hold. It needs a mgr.
	Room(ctx context.Context) (Room, error)
	// PGs returns all placement groups. It needs a mgr. It returns ErrAgain while
	// the mgr does not know all of them.
	PGs(ctx context.Context) ([]PG, error)
	// Exists reports whether the OSD is still in the OSD map or in the CRUSH map. Another OSD with the same id
	// does not count. It needs no mgr.
	Exists(ctx context.Context, osd Ref) (bool, error)
	// Down marks OSDs down. A running OSD marks itself up again. Ceph ignores unknown ids. The caller must first
	// check with Tree that the ids still belong to the same OSDs. Down needs no mgr.
	Down(ctx context.Context, ids ...int) error
	// Out marks OSDs out, so that their data moves to other OSDs. The rules for ids are those of Down. Out
	// needs no mgr.
	Out(ctx context.Context, ids ...int) error
	// In undoes Out: the OSDs hold their full share of data again. The rules for ids are those of Down. In needs no mgr.
	In(ctx context.Context, ids ...int) error
	// Reweight sets the share of data that an OSD holds, from 0 (out) to 1. It returns ErrNotFound for an unknown
	// OSD. It needs no mgr.
	Reweight(ctx context.Context, id int, weight float64) error
	// SafeToDestroy asks whether all these OSDs can be destroyed without loss of data. OSDs that do not exist
	// are safe. It needs a mgr.
	SafeToDestroy(ctx context.Context, ids ...int) (Safety, error)
	// Purge removes an OSD that is down from the OSD map, the CRUSH map and the authentication database. It also
	// removes the entries that `ceph osd rm` leaves behind. It succeeds for an unknown OSD. It returns ErrOtherOSD
	// and does nothing if the id belongs to another OSD. It returns ErrBusy if the OSD is up. Without force it also
	// returns ErrBusy while this OSD may have the only copy of data, and ErrAgain while Ceph cannot tell. It needs a mgr.
	Purge(ctx context.Context, osd Ref, force bool) error
	// CrushRemove removes a host without OSDs from the CRUSH map. It succeeds for an unknown host. It returns
	// ErrHostNotEmpty if the host still has OSDs. It needs no mgr.
	CrushRemove(ctx context.Context, host string) error
}

// Settings of pools and of the monitors.
type Settings interface {
	// SetPoolNumber sets a number of a pool: [PoolSize], [PoolMinSize] or [PoolPGMin]. With sure, Ceph accepts a
	// size of 1. It returns ErrNotFound for an unknown pool. It needs no mgr.
	SetPoolNumber(ctx context.Context, pool, setting string, value int, sure bool) error
	// MonOption returns an option of the monitors from Ceph's configuration database. It needs no mgr.
	MonOption(ctx context.Context, name string) (Option, error)
	// SetMonOption sets an option for all monitors, and ResetMonOption removes that setting. They need no mgr.
	SetMonOption(ctx context.Context, name, value string) error
	ResetMonOption(ctx context.Context, name string) error
}

// Runner runs a program in a place where ceph is configured, and waits for it.
type Runner interface {
	// Run runs argv without a shell. The error is nil if the program ended, whatever its exit code is. Run ends
	// soon after ctx, but the program may not.
	Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error)
}

// InteractiveRunner is a [Runner] that can also start a program that reads queries from stdin. Then several
// queries share one process; see [Client].
type InteractiveRunner interface {
	Runner
	// Place names the place where programs can run now, such as a pod.
	Place(ctx context.Context) (place string, err error)
	// Interact runs argv in the place, like Run. It passes on the program's output while the program runs.
	// Interact ends soon after ctx, but stdout and stderr may still be written to.
	Interact(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
}
