package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// Export writes the records of the matching events, one per line, and returns their number. Each line has exactly the
// stored bytes, so the hashes can be verified. Export does not sync w to disk.
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
