package actionstest

import (
	"context"
	"errors"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

var errDead = errors.New("the process is dead")

// Fuse kills one process at its n-th crash point. Crash points are right before and right after each append and each
// effect. After that, every call of the process fails and has no effect. A nil fuse never kills.
type Fuse struct {
	at   int
	kill context.CancelFunc

	// lock is a channel, not a mutex: its holder may wait for the bubble's time, and that time stops while a goroutine
	// waits for a mutex.
	lock   chan struct{}
	passed int
	where  string
	dead   bool
}

// NewFuse returns a fuse that calls kill at the given crash point; 0 means never.
func NewFuse(at int, kill context.CancelFunc) *Fuse {
	return &Fuse{at: at, kill: kill, lock: make(chan struct{}, 1)}
}

// Passed returns the number of crash points so far.
func (f *Fuse) Passed() int { return f.passed }

// Where names the crash point at which the process died.
func (f *Fuse) Where() string { return f.where }

// Around runs an effect between two crash points, unless the process is dead.
func (f *Fuse) Around(what string, do func() error) error {
	if f == nil {
		return do()
	}
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if f.burn("before " + what) {
		return errDead
	}
	err := do()
	if f.burn("after " + what) {
		return errDead
	}
	return err
}

func (f *Fuse) burn(where string) bool {
	if f.dead {
		return true
	}
	f.passed++
	if f.passed == f.at {
		f.dead, f.where = true, where
		f.kill()
	}
	return f.dead
}

// Alive returns an error if the process is dead. Call it before each read.
func (f *Fuse) Alive() error {
	if f == nil {
		return nil
	}
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if f.dead {
		return errDead
	}
	return nil
}

// Store returns the journal with crash points around each append.
func (f *Fuse) Store(store journal.Store) journal.Store { return fuseStore{store, f} }

type fuseStore struct {
	journal.Store
	fuse *Fuse
}

func (s fuseStore) Append(ctx context.Context, drafts ...journal.Draft) (events []journal.Event, err error) {
	types := make([]string, len(drafts))
	for i, draft := range drafts {
		types[i] = string(draft.Type)
	}
	err = s.fuse.Around("append "+strings.Join(types, "+"), func() (err error) {
		events, err = s.Store.Append(ctx, drafts...)
		return err
	})
	return events, err
}
