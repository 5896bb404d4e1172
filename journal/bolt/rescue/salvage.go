package rescue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// Salvage renames the damaged file and writes a new journal with its readable events to path. If EKCO is killed, the
// file at path is either still the damaged file or the complete new journal. The caller must hold the lock. problem is
// the error of the verification. The result is also the payload of the new journal's last event.
//
// The error wraps [journal.ErrUnverified] if the damaged file was not read to its end, and [journal.ErrUnwritable] if
// the new file could not be written.
func Salvage(ctx context.Context, path string, options Options, problem error) (found journal.JournalSalvaged, err error) {
	if err := files.RemoveUnfinished(path); err != nil {
		return found, err
	}
	aside, err := files.AsideName(path+files.DamagedSuffix, options.Now())
	if err != nil {
		return found, err
	}
	earlier, err := files.ListSetAside(path + files.DamagedSuffix)
	if err != nil {
		return found, err
	}
	feed := func(r *rebuilder) error { return r.readScavenged(ctx, path, options) }
	err = rebuild(path+files.SalvageSuffix, options.Now, feed, func(r *rebuilder) journal.Draft {
		found = r.salvaged(aside, earlier, problem)
		return journal.Draft{
			Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Actor: "journal", Payload: found,
		}
	})
	if errors.Is(err, journal.ErrUnverified) {
		return found, err
	}
	if err != nil {
		return found, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	if err := files.SetAside(path, aside); err != nil {
		return found, fmt.Errorf("rename the damaged file: %w: %w", journal.ErrUnwritable, err)
	}
	if err := files.Replace(path+files.SalvageSuffix, path); err != nil {
		return found, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	return found, nil
}

// readScavenged runs [scavenge] and passes its output to the rebuilder. If the file crashes the process that runs
// scavenge, readScavenged uses the output until then, because no more can be read.
func (r *rebuilder) readScavenged(ctx context.Context, path string, options Options) error {
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writer.CloseWithError(scavengeAside(ctx, path, options, writer))
	}()
	err := errors.Join(r.read(reader), reader.Close())
	<-ended
	return err
}

// scavengeAside runs [scavenge] in a child, if Options.Child is set.
func scavengeAside(ctx context.Context, path string, options Options, to io.Writer) error {
	if len(options.Child) == 0 {
		out := bufio.NewWriterSize(to, 1<<16)
		return errors.Join(scavenge(path, out), out.Flush())
	}
	limit, err := childLimit(path)
	if err != nil {
		return err
	}
	return runFor(ctx, limit+options.ExtraTimeout, append(slices.Clip(options.Child), childSalvage, path), to)
}
