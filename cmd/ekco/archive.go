package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// archive lets the socket export, import and verify the open journal's file.
type archive struct{ store *bolt.Store }

// Export implements ring.Archive.
func (a archive) Export(ctx context.Context, w io.Writer, query journal.Query) error {
	return api.ExportOf(ctx, a.store, w, query)
}

// Import implements ring.Archive.
func (a archive) Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error) {
	return offline.Import(ctx, a.store, from, r)
}

// VerifyNow implements ring.Archive. It checks a copy in a child process, because damage can crash the process that
// reads the file.
func (a archive) VerifyNow(ctx context.Context) (result api.VerifyResult, err error) {
	self, err := os.Executable()
	if err != nil {
		return result, fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	err = a.store.WithTempDir(func(path string) error {
		if err := a.store.CopyFile(ctx, path); err != nil {
			return err
		}
		result, err = verifyInChild(self)(ctx, path)
		return err
	})
	return result, err
}
