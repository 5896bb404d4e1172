package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// foreign leaves the journal of another cluster on a desk, and returns its path
// and content.
func foreign(t *testing.T, d *desk) (path string, content []byte) {
	t.Helper()
	path = written(t, d)
	store, err := bolt.Open(t.Context(), path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.BindCluster(t.Context(), "c-old"), store.Close()); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestTheOperatorBeginsAnewWhereAReinstalledClusterLeftItsJournal(t *testing.T) {
	d := newDesk(t, nil)
	path, content := foreign(t, d)
	cause := fmt.Errorf("run: %w", &journal.OtherClusterError{JournalID: "j", Bound: "c-old", Asked: "c-new"})
	if !cannotBeJournal(cause) {
		t.Fatal("the journal of another cluster is no reason to begin anew")
	}
	var log bytes.Buffer
	if err := replaceJournal(t.Context(), config.Config{General: config.General{Journal: path}}, cause, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	aside, err := filepath.Glob(path + ".of-cluster-c-old-*")
	if err != nil || len(aside) != 1 || !strings.Contains(log.String(), aside[0]) {
		t.Fatalf("set aside is %q, said is %s", aside, log.String())
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, content) {
		t.Errorf("the old journal was not kept as it was: %v", err)
	}
	d.expect(d.types("status"), exitDone, "renamed it to "+aside[0], "")
	d.app.now = time.Now
	d.expect(d.types("history", "--journal", aside[0]), exitDone, "node worker-2 (worker) is ready", "")
	d.expect(d.types("history"), exitDone, "it is of cluster c-old, and this is cluster c-new", "")
}

func TestNobodyButTheOperatorInItsPodSetsAJournalAside(t *testing.T) {
	for _, typed := range []string{"status", "history", "journal stat", "journal verify", "pause --reason r", "journal accept", "operator", "operator --kubeconfig /nowhere"} {
		d := newDesk(t, nil)
		path, content := foreign(t, d)
		garbage := filepath.Join(filepath.Dir(path), "admin.conf")
		if err := os.WriteFile(garbage, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d.types(strings.Fields(typed)...)
		d.types(append(strings.Fields(typed), "--journal", garbage)...)
		for _, name := range []string{path, garbage} {
			aside, err := filepath.Glob(name + ".*-*")
			if err != nil || len(aside) != 0 {
				t.Errorf("%s set %q aside", typed, aside)
			}
		}
		if kept, err := os.ReadFile(garbage); err != nil || !strings.HasPrefix(string(kept), "apiVersion") {
			t.Errorf("%s touched a file that is no journal: %v", typed, err)
		}
		if kept, err := os.ReadFile(path); err != nil || len(kept) != len(content) {
			t.Errorf("%s replaced the journal: %v", typed, err)
		}
	}
}
