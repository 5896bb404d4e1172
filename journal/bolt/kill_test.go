package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

func init() { children["append-forever"] = appendForever }

// appendForever prints the number of each event after it was acknowledged.
func appendForever(arguments []string) int {
	store, err := Open(context.Background(), arguments[0], Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("open")
	for i := 0; ; i++ {
		events, err := store.Append(context.Background(), bolttest.ObservedMany("node", 1+i%40)...)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(events[len(events)-1].Seq, events[len(events)-1].Hash)
	}
}

func TestNoAcknowledgedEventIsLostToSIGKILL(t *testing.T) {
	rounds := crashpoints.Choose(t, 60)
	path := bolttest.NewPath(t)
	random := rand.New(rand.NewPCG(3, 4))
	var acknowledged uint64
	var hash string
	for _, round := range rounds {
		child, lines := startChild(t, "append-forever", path)
		wanted := 1 + random.IntN(5)
		for batches := 1; ; batches++ {
			line, err := lines.ReadString('\n')
			if errors.Is(err, io.EOF) {
				break // a line without its end was cut off by the kill
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(line, &acknowledged, &hash); err != nil {
				t.Fatal(err)
			}
			if batches == wanted { // from here on anywhere
				time.AfterFunc(time.Duration(random.IntN(10_000))*time.Microsecond, func() { _ = child.Process.Kill() })
			}
		}
		report := bolttest.MustVerify(t, path)
		if report.LastSeq < acknowledged || report.Events != report.LastSeq {
			t.Fatalf("round %d: the journal ends at %d with %d events, %d were acknowledged",
				round, report.LastSeq, report.Events, acknowledged)
		}
	}
	if acknowledged < uint64(len(rounds)) {
		t.Errorf("only %d events in %d rounds", acknowledged, len(rounds))
	}
	store := mustOpen(t, path, inChild())
	if got := bolttest.MustRead(t, store, journal.Query{After: acknowledged - 1, Limit: 1}); len(got) != 1 || got[0].Hash.String() != hash {
		t.Errorf("event %d was acknowledged with hash %s, is stored as %+v", acknowledged, hash, got)
	}
}
