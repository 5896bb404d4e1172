package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// Salvage says what a damaged journal cost. The same is in the journal, as the
// event journal.salvaged.
type Salvage struct {
	journal.JournalSalvaged
}

// OpenOrSalvage is [Open], except that a damaged file is set aside under the
// name PATH.damaged-<UTC time> and replaced by a new journal that holds the
// longest prefix of events whose chain is intact. Salvage is nil when the file
// was sound. Nothing of the damaged file is ever overwritten, and a file that
// never was a journal is left alone, with [journal.ErrNotAJournal].
func OpenOrSalvage(ctx context.Context, path string, options Options) (*Store, *Salvage, error) {
	around := lookAround(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, nil, err
	}
	store, salvaged, err := openOrSalvage(ctx, path, options, lock, around)
	if err != nil {
		return nil, nil, around.giveUp(path, lock, options.ReadOnly, err)
	}
	return store, salvaged, nil
}

func openOrSalvage(ctx context.Context, path string, options Options, lock *os.File, around surroundings) (*Store, *Salvage, error) {
	store, err := openLocked(ctx, path, options, lock, around)
	if err == nil || !errors.Is(err, journal.ErrDamaged) || options.ReadOnly {
		return store, nil, err
	}
	salvaged, salvageErr := salvage(ctx, path, options, err)
	if salvageErr != nil {
		return nil, nil, fmt.Errorf("salvage journal %s: %w, after: %w", path, salvageErr, err)
	}
	store, err = openLocked(ctx, path, options, lock, around)
	return store, salvaged, err
}

// salvage leaves a sound journal at path. Killed anywhere, it leaves the damaged
// one there, or the new one.
func salvage(ctx context.Context, path string, options Options, problem error) (*Salvage, error) {
	if err := files.RemoveUnfinished(path); err != nil {
		return nil, err
	}
	aside, err := files.AsideName(path+files.DamagedSuffix, options.clock()())
	if err != nil {
		return nil, err
	}
	var found journal.JournalSalvaged
	feed := func(r *rebuilder) error {
		lines := salvageLines(ctx, path, options)
		return errors.Join(r.read(lines), lines.Close())
	}
	err = rebuild(path+files.SalvageSuffix, options.clock(), feed, func(r *rebuilder) journal.Draft {
		found = r.finding(aside, problem)
		return journal.Draft{
			Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Actor: "journal", Payload: found,
		}
	})
	if errors.Is(err, journal.ErrUnverified) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	if err := files.SetAside(path, aside); err != nil {
		return nil, fmt.Errorf("set the damaged file aside: %w: %w", journal.ErrUnwritable, err)
	}
	if err := files.Replace(path+files.SalvageSuffix, path); err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	return &Salvage{JournalSalvaged: found}, nil
}

// stream is the output of a scavenger; closing it waits for its end.
type stream struct {
	*io.PipeReader
	ended <-chan struct{}
}

func (s stream) Close() error {
	err := s.PipeReader.Close()
	<-s.ended
	return err
}

// salvageLines streams what [scavenge] finds. The reader ends with an error when
// the process for it ends early. If that is [journal.ErrDamaged], it died of the
// file, and what came until then is all that can be had.
func salvageLines(ctx context.Context, path string, options Options) io.ReadCloser {
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writer.CloseWithError(scavengeAside(ctx, path, options, writer))
	}()
	return stream{PipeReader: reader, ended: ended}
}

// scavengeAside runs [scavenge] in a child, if there is a program for it.
func scavengeAside(ctx context.Context, path string, options Options, to io.Writer) error {
	if len(options.Child) == 0 {
		out := bufio.NewWriterSize(to, 1<<16)
		return errors.Join(scavenge(path, out), out.Flush())
	}
	limit, err := childLimit(path)
	if err != nil {
		return err
	}
	return runFor(ctx, limit+options.Patience, append(slices.Clip(options.Child), childSalvage, path), to)
}
