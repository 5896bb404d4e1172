package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// inPod is how the operator in its pod opens its journal.
func inPod(now time.Time) Options {
	options := inChild()
	options.OwnPath, options.Now = true, func() time.Time { return now }
	return options
}

// ofCluster leaves a journal of that cluster at path, and returns its content.
func ofCluster(t *testing.T, path, uid string) []byte {
	t.Helper()
	store := mustOpen(t, path, Options{})
	bolttest.MustAppend(t, store, bolttest.Observed("worker-1"))
	if err := store.BindCluster(t.Context(), uid); err != nil {
		t.Fatal(err)
	}
	bolttest.MustClose(t, store)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// begun opens the journal at path, and returns what it says to have replaced.
func begun(t *testing.T, path string) journal.JournalReplaced {
	t.Helper()
	store := mustOpen(t, path, inChild())
	defer bolttest.MustClose(t, store)
	events := bolttest.MustRead(t, store, journal.Query{})
	if len(events) != 2 || events[0].Type != journal.TypeJournalCreated {
		t.Fatalf("the new journal has %d events", len(events))
	}
	payload, err := events[1].Decode()
	if err != nil {
		t.Fatal(err)
	}
	return *payload.(*journal.JournalReplaced)
}

func TestTheJournalOfAClusterThatIsNoMoreIsSetAsideUnderItsName(t *testing.T) {
	path, now := bolttest.NewPath(t), time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	content := ofCluster(t, path, "c-old")
	old := bolttest.MustVerify(t, path)
	replaced, err := Begin(t.Context(), path, inPod(now), "c-new")
	if err != nil {
		t.Fatal(err)
	}
	if want := path + ".of-cluster-c-old-20260506T070809Z"; replaced.File != want {
		t.Errorf("it was set aside as %s, want %s", replaced.File, want)
	}
	if aside, err := os.ReadFile(replaced.File); err != nil || !bytes.Equal(aside, content) {
		t.Errorf("what was set aside is not the old journal: %v", err)
	}
	if replaced.JournalID != old.JournalID || replaced.ClusterUID != "c-old" || replaced.LastSeq != old.LastSeq || replaced.LastTime.IsZero() {
		t.Errorf("said of it is %+v", replaced)
	}
	if said := begun(t, path); said != replaced {
		t.Errorf("the new journal says %+v, want %+v", said, replaced)
	}
	store := mustOpen(t, path, inChild())
	if err := store.BindCluster(t.Context(), "c-new"); err != nil {
		t.Errorf("the new journal cannot be used here: %v", err)
	}
	if stat, err := store.Stat(t.Context()); err != nil || stat.JournalID == old.JournalID {
		t.Errorf("the new journal has the old one's id: %+v, %v", stat, err)
	}
}

func TestNoJournalIsSetAsideThatMayBeThisClusters(t *testing.T) {
	bound, fresh, directory := bolttest.NewPath(t), bolttest.NewPath(t), t.TempDir()
	content := ofCluster(t, bound, "c1")
	bolttest.MustClose(t, mustOpen(t, fresh, Options{}))
	for name, test := range map[string]struct{ path, cluster string }{
		"one of this cluster":              {bound, "c1"},
		"when this cluster is not known":   {bound, ""},
		"one that is of no cluster yet":    {fresh, "c1"},
		"a directory, which is no file":    {directory, "c1"},
		"where there is nothing":           {bolttest.NewPath(t), "c1"},
		"one that another process has now": {locked(t), "c2"},
	} {
		if replaced, err := Begin(t.Context(), test.path, inPod(time.Now()), test.cluster); err == nil {
			t.Errorf("%s was set aside: %+v", name, replaced)
		}
	}
	if now, err := os.ReadFile(bound); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the journal of this cluster was touched: %v", err)
	}
}

// locked is the path of a journal of cluster c1 that is open.
func locked(t *testing.T) string {
	t.Helper()
	path := bolttest.NewPath(t)
	ofCluster(t, path, "c1")
	mustOpen(t, path, Options{})
	return path
}

func TestOnlyTheNewestThreeFilesThatWereSetAsideStay(t *testing.T) {
	path := bolttest.NewPath(t)
	bystanders := []string{files.DamagedSuffix + "20260101T000000Z", ".of-cluster-mine", ".not-a-journal-20260101T000000Z.txt"}
	if err := os.MkdirAll(filepath.Dir(path), files.DirectoryMode); err != nil {
		t.Fatal(err)
	}
	for _, name := range bystanders {
		if err := os.WriteFile(path+name, nil, files.FileMode); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for i := range 5 {
		ofCluster(t, path, fmt.Sprint("c", i))
		// The clock of the last one is wrong: what was set aside now stays all the same.
		now := time.Date(2026, 5, 1+i, 0, 0, 0, 0, time.UTC)
		if i == 4 {
			now = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		replaced, err := Begin(t.Context(), path, inPod(now), "here")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, filepath.Base(replaced.File))
	}
	var left []string
	for _, name := range names(t, filepath.Dir(path)) {
		if strings.Contains(name, ".of-cluster-c") {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	if want := []string{all[2], all[3], all[4]}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	for _, name := range bystanders {
		if _, err := os.Stat(path + name); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}
