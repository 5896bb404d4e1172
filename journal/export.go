package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// Export writes the records of the events that match, one a line, and returns
// how many there were. The lines are the stored bytes: whoever has them can
// verify the chain. Nothing is known to be on disk when Export returns.
func Export(ctx context.Context, store Store, w io.Writer, query Query) (events uint64, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	for event, err := range store.Read(ctx, query) {
		if err == nil {
			_, err = out.Write(append(event.Record(), '\n'))
		}
		if err != nil {
			return events, errors.Join(fmt.Errorf("export journal: %w", err), out.Flush())
		}
		events++
	}
	if err := out.Flush(); err != nil {
		return events, fmt.Errorf("export journal: %w", err)
	}
	return events, nil
}
