package bolt

import (
	"testing"

	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/journaltest"
)

var children = bolttest.NewChildren()

func TestMain(m *testing.M) {
	tempdir.InMemory()
	children.Main(m, removeFixtures)
}

func inChild() Options { return Options{Child: bolttest.Child()} }

func mustOpen(t testing.TB, path string, options Options) *Store {
	t.Helper()
	store, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // many tests close it themselves
	return store
}

func TestABoltStoreIsAJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journal.Store {
		path := bolttest.NewPath(t)
		store := mustOpen(t, path, Options{})
		t.Cleanup(func() { // runs after the suite has closed the store
			_ = store.Close()
			bolttest.MustVerify(t, path)
		})
		return store
	})
}
