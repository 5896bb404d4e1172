package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
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
	d.expect(d.types("journal", "verify", "--expect", forged), exitFailed, "not the one that is expected: event #", "")
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
	d.expect(d.types("journal", "verify", "--expect", "12:"+strings.Repeat("ab", 32)), exitFailed, "event #12 is not in the journal any more, which begins at #40", "")
}

func TestVerifySaysWhenTheJournalWasSalvaged(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9, Head: journal.Position{Seq: 9}}}
	op.past = []journal.Event{event(t, 5, "", journal.TypeJournalSalvaged, journal.JournalSalvaged{})}
	d := newDesk(t, op)
	d.expect(d.types("journal", "verify"), exitDone, "Salvaged: at "+op.past[0].Time.UTC().Format("2006-01-02T15:04:05Z")+", after damage; events were lost\n", "")
}

// TestVerifyTellsWhatItCanWhereTheOperatorDoesNotHaveTheJournalOpen: the file is sound all the same.
func TestVerifyTellsWhatItCanWhereTheOperatorDoesNotHaveTheJournalOpen(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9, Head: journal.Position{Seq: 9}}}
	d := newDesk(t, op)
	op.unread = fmt.Errorf("%w: the journal is not open", api.ErrRefused)
	d.expect(d.types("journal", "verify"), exitDone, "Salvaged: cannot be told now: refused: the journal is not open\n", "")
	d.expect(d.types("journal", "verify", "--expect", "9:"+strings.Repeat("ab", 32)), exitFailed, "", "the journal is not open")
}
