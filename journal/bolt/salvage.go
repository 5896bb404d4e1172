package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// Salvage is the loss by a damaged journal. The journal has it as event journal.salvaged.
type Salvage struct {
	journal.JournalSalvaged
}

// OpenOrSalvage is like [Open], but it renames a damaged file to PATH.damaged-<UTC time>, and replaces it by a new
// journal with the longest prefix of events whose chain is intact. Salvage is nil if the file was intact. It never
// overwrites any part of the damaged file, and leaves a file that never was a journal unchanged, with
// [journal.ErrNotAJournal].
func OpenOrSalvage(ctx context.Context, path string, options Options) (*Store, *Salvage, error) {
	around := rescue.LookAround(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, nil, err
	}
	store, salvaged, err := openOrSalvage(ctx, path, options, lock, around)
	if err != nil {
		return nil, nil, around.GiveUp(path, lock, options.ReadOnly, err)
	}
	return store, salvaged, nil
}

func openOrSalvage(ctx context.Context, path string, options Options, lock *os.File, around rescue.Surroundings) (*Store, *Salvage, error) {
	store, err := openLocked(ctx, path, options, lock, around)
	if err == nil || !errors.Is(err, journal.ErrDamaged) || options.ReadOnly {
		return store, nil, err
	}
	found, salvageErr := rescue.Salvage(ctx, path, options.reading(), err)
	if salvageErr != nil {
		return nil, nil, fmt.Errorf("salvage journal %s: %w, after: %w", path, salvageErr, err)
	}
	store, err = openLocked(ctx, path, options, lock, around)
	return store, &Salvage{JournalSalvaged: found}, err
}
