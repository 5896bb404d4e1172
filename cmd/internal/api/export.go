package api

import (
	"compress/gzip"
	"context"
	"errors"
	"io"

	"github.com/replicatedhq/ekco/journal"
)

// ExportOf writes the matching events of a store; see [Backend.Export].
func ExportOf(ctx context.Context, store journal.Store, w io.Writer, query journal.Query) error {
	packed := gzip.NewWriter(w)
	_, err := journal.Export(ctx, store, packed, query)
	return errors.Join(err, packed.Close())
}
