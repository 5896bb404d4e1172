package rescue_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
)

var children = bolttest.NewChildren()

func TestMain(m *testing.M) {
	tempdir.InMemory()
	children.Main(m, nil)
}

func inChild() bolt.Options { return bolt.Options{Child: bolttest.Child()} }

// inPod is how the operator in its pod opens its journal.
func inPod(now time.Time) bolt.Options {
	options := inChild()
	options.OwnPath, options.Now = true, func() time.Time { return now }
	return options
}

func mustOpen(t testing.TB, path string, options bolt.Options) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // many tests close it themselves
	return store
}
