package durable

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoHangsIsNotWaitedForForEver: whoever has the lock may have been stopped, and nobody would know why
// nothing is written.
func TestWhoHangsIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		held, err := Lock(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := Lock(t.Context(), dir); !errors.Is(err, ErrLocked) {
			t.Error(err)
		}
		if waited := time.Since(began); waited != lockTimeout {
			t.Errorf("it waited %s", waited)
		}
		if err := Replace(filepath.Join(dir, "file"), []byte("new"), 0o600); !errors.Is(err, ErrLocked) {
			t.Error(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := Lock(ended, dir); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.AfterFunc(time.Second, func() { _ = held.Close() })
		began = time.Now()
		next, err := Lock(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < time.Second || waited > time.Second+lockInterval {
			t.Errorf("it waited %s for who needed a second", waited)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	})
}
