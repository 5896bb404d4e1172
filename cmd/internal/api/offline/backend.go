// Package offline executes commands on the journal's file while no operator runs.
package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// Backend executes one command at a time on a file. It keeps the journal open from its first call until
// [Backend.Close], so that no operator can start.
type Backend struct {
	path string
	// machines fold the journal.
	machines []fsm.Capability
	options  bolt.Options
	verify   func(ctx context.Context, path string) (api.VerifyResult, error)
	actor    string
	// clock sets the times of a command's events. If the last operator ran in the same boot of the machine, it
	// continues that operator's clock.
	clock *clock.Clock
	// reader is the file opened for reading, or nil.
	reader *bolt.Store
}

var _ api.Backend = (*Backend)(nil)

// New returns a backend for the journal at path. child is the command line that runs rescue.Child. verify checks a
// whole file.
func New(path string, machines []fsm.Capability, child []string, verify func(ctx context.Context, path string) (api.VerifyResult, error)) *Backend {
	now := clock.New(clock.Machine())
	return &Backend{path: path, machines: machines, options: bolt.Options{Child: child, Now: now.Now}, verify: verify, actor: api.LocalActor(), clock: now}
}

// Close releases the journal.
func (b *Backend) Close() error {
	if b.reader == nil {
		return nil
	}
	reader := b.reader
	b.reader = nil
	return reader.Close()
}

// read opens the journal for reading.
func (b *Backend) read(ctx context.Context) (*bolt.Store, error) {
	if b.reader != nil {
		return b.reader, nil
	}
	if err := b.requireFile(); err != nil {
		return nil, err
	}
	options := b.options
	options.ReadOnly = true
	store, err := bolt.Open(ctx, b.path, options)
	if err != nil {
		return nil, Advise(b.path, err)
	}
	b.reader = store
	return store, nil
}

// requireFile returns an error if there is no file, so that a mistyped path creates no journal.
func (b *Backend) requireFile() error {
	if _, err := os.Stat(b.path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no operator runs, and there is no journal at %s; give its path with --journal: %w", b.path, err)
	} else if err != nil {
		return Advise(b.path, fmt.Errorf("open journal: %w", err))
	}
	return nil
}

// Status implements api.Backend with the state in the journal.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	store, err := b.read(ctx)
	if err != nil {
		return api.Status{}, err
	}
	state, err := b.fold(ctx, store)
	if err != nil {
		return api.Status{}, err
	}
	stat, err := store.Stat(ctx)
	if err != nil {
		return api.Status{}, fmt.Errorf("describe the journal: %w", err)
	}
	status := api.StatusOf(state, fsm.Policy{}, b.clock.Now())
	status.AsOf = api.LastSeen(state)
	status.Journal.Stat = stat
	status.Journal.Error = unwritableReason(b.path)
	status.Journal.Writable = status.Journal.Error == ""
	return status, nil
}

// Events implements api.Backend. Without an operator no new events come, so with follow the sequence ends with
// ErrNoOperator.
func (b *Backend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		store, err := b.read(ctx)
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		for event, err := range store.Read(ctx, query) {
			if !yield(event, err) || err != nil {
				return
			}
		}
		if follow {
			yield(journal.Event{}, fmt.Errorf("cannot follow events: %w", api.ErrNoOperator))
		}
	}
}

// Explain implements api.Backend. It returns an error, because it would need a ring.
func (b *Backend) Explain(context.Context, fsm.Request) (api.Explanation, error) {
	return api.Explanation{}, fmt.Errorf("explain a request: %w", api.ErrNoOperator)
}

// ExplainThing implements api.Backend with the state in the journal.
func (b *Backend) ExplainThing(ctx context.Context, request api.ThingRequest) ([]api.ThingExplanation, error) {
	store, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	state, err := b.fold(ctx, store)
	if err != nil {
		return nil, err
	}
	return api.ExplainThings(state, b.clock.Now(), request)
}

// Request implements api.Backend. It returns an error, because it would need a ring.
func (b *Backend) Request(context.Context, fsm.Request) (api.Admission, error) {
	return api.Admission{}, fmt.Errorf("request an action: %w", api.ErrNoOperator)
}

// Do implements api.Backend. It decides with the folded state and appends, while no other process can use the file.
func (b *Backend) Do(ctx context.Context, command api.Command) error {
	return b.open(ctx, func(store *bolt.Store) error {
		state, err := b.fold(ctx, store)
		if err != nil {
			return err
		}
		drafts, err := command.By(b.actor).Decide(state, b.clock.Now())
		if len(drafts) > 0 {
			_, appendErr := store.Append(ctx, drafts...)
			err = errors.Join(err, appendErr)
		}
		return err
	})
}

// fold returns the folded state, and sets the clock to continue its time.
func (b *Backend) fold(ctx context.Context, store *bolt.Store) (*fsm.State, error) {
	state, _, err := ring.Fold(ctx, store, b.machines...)
	if err != nil {
		return nil, err
	}
	b.clock.Continue(state.Clock.BootID, state.Clock.Zero)
	return state, nil
}

// open opens the journal for writing, and calls use.
func (b *Backend) open(ctx context.Context, use func(*bolt.Store) error) error {
	if err := b.requireFile(); err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	store, err := bolt.Open(ctx, b.path, b.options)
	if err != nil {
		return Advise(b.path, err)
	}
	return errors.Join(use(store), store.Close())
}

// Verify implements api.Backend.
func (b *Backend) Verify(ctx context.Context) (api.VerifyResult, error) {
	if err := b.requireFile(); err != nil {
		return api.VerifyResult{}, err
	}
	result, err := b.verify(ctx, b.path)
	return result, Advise(b.path, err)
}

// Export implements api.Backend.
func (b *Backend) Export(ctx context.Context, w io.Writer, query journal.Query) error {
	store, err := b.read(ctx)
	if err != nil {
		return err
	}
	return api.ExportOf(ctx, store, w, query)
}

// Import implements api.Backend.
func (b *Backend) Import(ctx context.Context, from string, r io.Reader) (imported journal.JournalImported, err error) {
	err = b.open(ctx, func(store *bolt.Store) error {
		var err error
		imported, err = Import(ctx, store, from, r)
		return err
	})
	return imported, err
}
