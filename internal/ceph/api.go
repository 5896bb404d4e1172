package ceph

import (
	"context"
	"errors"
	"io"
)

// Sentinel errors of an [API]. Every error of a call wraps at most one.
var (
	// ErrNotFound: Ceph knows no such thing (exit code 2, ENOENT).
	ErrNotFound = errors.New("not found")
	// ErrAgain: Ceph cannot tell yet (exit code 11, EAGAIN).
	ErrAgain = errors.New("not now")
	// ErrBusy: Ceph refuses because the thing is in use (exit code 16, EBUSY).
	ErrBusy = errors.New("in use")
	// ErrHostNotEmpty: the CRUSH host still has OSDs (exit code 39, ENOTEMPTY).
	ErrHostNotEmpty = errors.New("the CRUSH host is not empty")
	// ErrOtherOSD: the id belongs to another OSD now. Ceph gives ids again.
	ErrOtherOSD = errors.New("another OSD has this id")
	// ErrUnavailable: Ceph gave no answer. Whether a change happened is unknown.
	ErrUnavailable = errors.New("ceph does not answer")
	// ErrReadOnly: a client that only reads was asked to change something. Nothing
	// was run.
	ErrReadOnly = errors.New("this EKCO only reads, as in a dry run; nothing was changed")
	// ErrInvalid: an id or a name that cannot be one. Nothing was run.
	ErrInvalid = errors.New("invalid argument for ceph")
)

// API is what EKCO asks of a Ceph cluster. Implementations are safe for
// concurrent use. Every call honours its context and ends in bounded time.
// Repeating any of them is harmless.
type API interface {
	Settings
	// Version returns the version of the monitor that answered.
	Version(ctx context.Context) (Version, error)
	// Health returns the cluster's own opinion of itself. It needs a quorum of
	// monitors, and no mgr.
	Health(ctx context.Context) (Health, error)
	// Tree returns all OSDs and CRUSH hosts. It needs no mgr.
	Tree(ctx context.Context) (Tree, error)
	// Pools returns all pools. It needs no mgr.
	Pools(ctx context.Context) ([]Pool, error)
	// Room returns how much data there is and can be. It needs a mgr.
	Room(ctx context.Context) (Room, error)
	// PGs returns all placement groups. It needs a mgr. It returns ErrAgain while
	// the mgr does not know all of them.
	PGs(ctx context.Context) ([]PG, error)
	// Exists reports whether anything of the OSD is left in the OSD map or in
	// the CRUSH map. Another OSD of the same id is not it. It needs no mgr.
	Exists(ctx context.Context, osd Ref) (bool, error)
	// Down marks OSDs down. A running OSD marks itself up again. Unknown ones are
	// ignored. Whether the ids still mean the same OSDs is for the caller to look
	// up before, with Tree. It needs no mgr.
	Down(ctx context.Context, ids ...int) error
	// Out marks OSDs out, so that their data moves elsewhere. Ids as in Down. It
	// needs no mgr.
	Out(ctx context.Context, ids ...int) error
	// In takes back what Out did: the OSDs are to hold data again, all of their
	// share. Ids as in Down. It needs no mgr.
	In(ctx context.Context, ids ...int) error
	// Reweight sets how much of its share an OSD is to hold, from 0, which is out,
	// to 1. An unknown one is ErrNotFound. It needs no mgr.
	Reweight(ctx context.Context, id int, weight float64) error
	// SafeToDestroy asks whether these OSDs can all go without loss of data. OSDs
	// that do not exist are safe. It needs a mgr.
	SafeToDestroy(ctx context.Context, ids ...int) (Safety, error)
	// Purge removes an OSD that is down from the OSD map, the CRUSH map and the
	// authentication database. It also removes what `ceph osd rm` leaves behind.
	// It succeeds for an unknown OSD. It returns ErrOtherOSD, and does nothing, if
	// the id belongs to another OSD, and ErrBusy if the OSD is up. Without force
	// it also returns ErrBusy while data may be on this OSD alone, and ErrAgain
	// while Ceph cannot tell. It needs a mgr.
	Purge(ctx context.Context, osd Ref, force bool) error
	// CrushRemove removes a host without OSDs from the CRUSH map. An unknown one
	// is done. It returns ErrHostNotEmpty when OSDs are left in it. It needs no
	// mgr.
	CrushRemove(ctx context.Context, host string) error
}

// Settings of pools and of the monitors.
type Settings interface {
	// SetPoolNumber sets a number of a pool: [PoolSize], [PoolMinSize] or [PoolPGMin]. With
	// sure it is confirmed that data may be kept in a single copy. An unknown pool is
	// ErrNotFound. It needs no mgr.
	SetPoolNumber(ctx context.Context, pool, setting string, value int, sure bool) error
	// MonOption returns what Ceph's own database says of an option of the monitors. It
	// needs no mgr.
	MonOption(ctx context.Context, name string) (Option, error)
	// SetMonOption sets an option for all monitors, and ResetMonOption has them use what they
	// use without. They need no mgr.
	SetMonOption(ctx context.Context, name, value string) error
	ResetMonOption(ctx context.Context, name string) error
}

// Runner runs a program where ceph is configured and waits for it.
type Runner interface {
	// Run runs argv without a shell. The error is nil when the program ran to its
	// end, whatever its exit code. Run ends soon after ctx does; the program
	// may not.
	Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error)
}

// Conversing is a [Runner] that can also leave a program running, and talk with it.
// Then questions share processes; see [Client].
type Conversing interface {
	Runner
	// Where names the place where programs can be run now.
	Where(ctx context.Context) (place string, err error)
	// Converse runs argv there like Run. The program reads stdin, and what it
	// writes is passed on as it comes. Converse ends soon after ctx does; stdout
	// and stderr may still be written to then.
	Converse(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
}
