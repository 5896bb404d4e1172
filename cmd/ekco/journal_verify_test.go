package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/words"
)

// verifiedOffline returns what the file at the desk is found to be.
func (d *desk) verifiedOffline() api.VerifyResult {
	d.t.Helper()
	d.expect(d.types("journal", "verify", "-o", "json"), exitDone, `"head"`, "")
	var result api.VerifyResult
	if err := json.Unmarshal(d.out.Bytes(), &result); err != nil {
		d.t.Fatal(err)
	}
	return result
}

func TestVerifyPrintsTheHeadAndComparesOneThatWasKept(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	head := d.verifiedOffline().Head
	kept, short := fmt.Sprintf("#%d sha256:%s", head.Seq, head.Hash), fmt.Sprintf("%d:%s", head.Seq, head.Hash)
	d.expect(d.types("journal", "verify"), exitDone, "Head: "+kept+"\nSalvaged: never, as far back as #1\n", "")
	d.expect(d.types("journal", "verify"), exitDone, "journal verify --expect "+short, "")
	d.expect(d.types("pause", "--reason", "one more event"), exitDone, "", "")
	if now := d.verifiedOffline().Head; now == head {
		t.Fatal("the head does not move")
	}
	for _, as := range []string{kept, kept[1:], short, "#" + short} {
		d.expect(d.types("journal", "verify", "--expect", as), exitDone, "As expected: #", "")
	}

	forged := fmt.Sprintf("%d:%s", head.Seq, strings.Repeat("ab", 32))
	d.expect(d.types("journal", "verify", "--expect", forged), exitFailed, "not the expected one: event #", "")
	d.expect(d.types("journal", "verify", "--expect", forged, "-o", "json"), exitFailed, `"ok": false`, "")
	ahead := fmt.Sprintf("%d:%s", head.Seq+9, head.Hash)
	d.expect(d.types("journal", "verify", "--expect", ahead), exitFailed, "which ends at #", "")
}

func TestAnExpectedHeadIsReadExactly(t *testing.T) {
	d := newDesk(t, &fakeOperator{})
	for _, wrong := range []string{"34", "34:", "34:9e01", "0:" + strings.Repeat("ab", 32), "x:" + strings.Repeat("ab", 32), "-1:" + strings.Repeat("ab", 32)} {
		d.expect(d.types("journal", "verify", "--expect", wrong), exitUsage, "", `--expect is "`+wrong+`": want the number of an event and its hash`)
	}
}

func TestWhatRetentionMovedOutCannotBeCompared(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 3, FirstSeq: 40, LastSeq: 42, Head: journal.Position{Seq: 42}}}
	d := newDesk(t, op)
	d.expect(d.types("journal", "verify", "--expect", "12:"+strings.Repeat("ab", 32)), exitFailed, "event #12 is no longer in the journal, which begins at #40", "")
}

func TestVerifyTellsOfEachLossWhichEventsAndWhichTime(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9, Head: journal.Position{Seq: 9}}}
	op.past = []journal.Event{
		event(t, 4, "", journal.TypeNodeObserved, journal.NodeObserved{}),
		event(t, 5, "", journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: 4, LostAtLeast: 3, DamagedFile: "/j.damaged-2", EarlierFiles: []string{"/j.damaged-1"}}),
		event(t, 6, "", journal.TypeJournalOutdated, journal.JournalOutdated{LastSeq: 5, Mirrored: journal.Position{Seq: 7}}),
		event(t, 8, "", journal.TypeJournalSalvaged, journal.JournalSalvaged{}),
	}
	at := func(i int) string { return words.Stamp(op.past[i].Time) }
	d := newDesk(t, op)
	d.expect(d.types("journal", "verify"), exitDone, "Journal salvaged after damage: "+at(1)+" (event #5); events were lost after #4, at least 3; "+
		"the events between "+at(0)+" and "+at(1)+" are unknown\n  the damaged file: /j.damaged-2\n"+
		"  earlier damaged files, which no remaining event names: /j.damaged-1\n"+
		"Newest events lost: noticed at "+at(2)+" (event #6); events were lost after #5, at least 2; "+
		"the events between "+at(1)+" and "+at(2)+" are unknown\n"+
		"Journal salvaged after damage: "+at(3)+" (event #8); events were lost\n", "")
	d.expect(d.types("journal", "verify", "-o", "json"), exitDone, `"after": 5`, "")
}

// salvaged spoils the journal at the desk where the text stands, and has it salvaged.
func salvaged(t *testing.T, path, where string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := bytes.ReplaceAll(content, []byte(where), bytes.ToUpper([]byte(where))) // pages have copies
	if bytes.Equal(spoiled, content) {
		t.Fatalf("the journal has no %s", where)
	}
	if err := os.WriteFile(path, spoiled, 0o600); err != nil {
		t.Fatal(err)
	}
	store, found, err := bolt.OpenOrSalvage(t.Context(), path, bolt.Options{})
	if err != nil || found == nil {
		t.Fatalf("salvage: %v, %v", found, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestASecondDamageHidesNoEarlierOne: whether its record was kept, or is lost now.
func TestASecondDamageHidesNoEarlierOne(t *testing.T) {
	for second, want := range map[string]int{`"seq":5,`: 2, `"seq":3,`: 1} {
		d := newDesk(t, nil)
		path := written(t, d)
		d.expect(d.types("pause", "--reason", "one more event"), exitDone, "", "")
		salvaged(t, path, `"seq":4,`)
		first, err := filepath.Glob(path + ".damaged-*")
		if err != nil || len(first) != 1 {
			t.Fatalf("set aside are %v, %v", first, err)
		}
		d.expect(d.types("journal", "accept", "--yes"), exitDone, "", "")
		salvaged(t, path, second)
		d.expect(d.types("journal", "verify"), exitDone, filepath.Base(first[0]), "")
		result := d.verifiedOffline()
		if len(result.Losses) != want {
			t.Errorf("after damage at %s: losses are %+v", second, result.Losses)
		}
		aside, err := filepath.Glob(path + ".damaged-*")
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, loss := range result.Losses {
			told = append(append(told, loss.DamagedFile), loss.EarlierFiles...)
			if loss.From.IsZero() || loss.After == 0 {
				t.Errorf("after damage at %s: nothing says since when events are lost: %+v", second, loss)
			}
		}
		if slices.Sort(told); !slices.Equal(told, aside) {
			t.Errorf("after damage at %s: told of are %q, of the files set aside %q", second, told, aside)
		}
	}
}

// TestVerifyTellsWhatItCanWhereTheOperatorDoesNotHaveTheJournalOpen: the file is sound all the same.
func TestVerifyTellsWhatItCanWhereTheOperatorDoesNotHaveTheJournalOpen(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9, Head: journal.Position{Seq: 9}}}
	d := newDesk(t, op)
	op.unread = fmt.Errorf("%w: the journal is not open", api.ErrRefused)
	d.expect(d.types("journal", "verify"), exitDone, "Salvaged: unknown: refused: the journal is not open\n", "")
	d.expect(d.types("journal", "verify", "--expect", "9:"+strings.Repeat("ab", 32)), exitFailed, "", "the journal is not open")
}
