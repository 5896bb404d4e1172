package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// Salvage describes a damaged journal and what was lost. It is also the payload of the event journal.salvaged.
type Salvage struct {
	journal.JournalSalvaged
}

// OpenOrSalvage is like [Open], but it repairs a damaged file: it renames the file to PATH.damaged-<UTC time>, and
// creates a new journal with all events before the first lost or changed one. It returns a nil Salvage if the file was
// intact. It never changes the content of the damaged file. For a file that never was a journal it changes nothing, and
// returns [journal.ErrNotAJournal].
func OpenOrSalvage(ctx context.Context, path string, options Options) (*Store, *Salvage, error) {
	neighbours := rescue.FindNeighbourFiles(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, nil, err
	}
	store, salvaged, err := openOrSalvage(ctx, path, options, lock, neighbours)
	if err != nil {
		return nil, nil, neighbours.ReleaseLock(path, lock, options.ReadOnly, err)
	}
	return store, salvaged, nil
}

func openOrSalvage(ctx context.Context, path string, options Options, lock *os.File, neighbours rescue.NeighbourFiles) (*Store, *Salvage, error) {
	store, err := openLocked(ctx, path, options, lock, neighbours)
	if err == nil || !errors.Is(err, journal.ErrDamaged) || options.ReadOnly {
		return store, nil, err
	}
	found, salvageErr := rescue.Salvage(ctx, path, options.rescueOptions(), err)
	if salvageErr != nil {
		return nil, nil, fmt.Errorf("salvage journal %s: %w, after: %w", path, salvageErr, err)
	}
	store, err = openLocked(ctx, path, options, lock, neighbours)
	return store, &Salvage{JournalSalvaged: found}, err
}
