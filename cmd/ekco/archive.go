package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/internal/api"
	"github.com/replicatedhq/ekco/internal/api/offline"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// archive is the file of a journal in use, as the socket serves it.
type archive struct{ store *bolt.Store }

// Export implements ring.Archive.
func (a archive) Export(ctx context.Context, w io.Writer, query journal.Query) error {
	return api.ExportOf(ctx, a.store, w, query)
}

// Import implements ring.Archive.
func (a archive) Import(ctx context.Context, from string, r io.Reader) (imported journal.JournalImported, err error) {
	err = a.beside("import", func(path string) error {
		if err := spool(path, r); err != nil {
			return err
		}
		imported, err = a.store.Import(ctx, path, from)
		return offline.WithoutPath(err, path)
	})
	return imported, err
}

// VerifyNow implements ring.Archive. It checks a copy in a child, because
// damage can crash the process that reads it.
func (a archive) VerifyNow(ctx context.Context) (result api.VerifyResult, err error) {
	self, err := os.Executable()
	if err != nil {
		return result, fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	err = a.beside("verify", func(path string) error {
		if err := a.store.CopyFile(ctx, path); err != nil {
			return err
		}
		result, err = verifyInChild(self)(ctx, path)
		return err
	})
	return result, err
}

// beside calls f with the path of a file that may be made beside the journal,
// in a directory that only EKCO can read and that is removed afterwards.
func (a archive) beside(name string, f func(path string) error) (err error) {
	stat, err := a.store.Stat(context.Background())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(stat.Path), "."+name+"-")
	if err != nil {
		return fmt.Errorf("make room beside the journal: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(filepath.Join(dir, "journal.db"))
}

// spool writes what it reads into a file.
func spool(path string, r io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the export: %w", err)
	}
	_, err = io.Copy(file, r)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("keep the export: %w", err)
	}
	return nil
}
