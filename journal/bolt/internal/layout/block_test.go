package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// TestTheBytesOfAnIndexBlockAreFixed compares with what format 1 wrote first.
func TestTheBytesOfAnIndexBlockAreFixed(t *testing.T) {
	var entries []Entry
	for i := range BlockSize {
		event := journal.Event{
			Seq: uint64(BlockSize + 1 + i), Time: time.Unix(int64(1_700_000_000-i%7), int64(i)), Type: journal.TypePodGone,
			Subject: journal.PodSubject("default", string(rune('a'+i%26)), "uid", "node"), Action: []string{"", "a"}[i%2],
		}
		entries = append(entries, NewEntry(event))
	}
	sum := sha256.Sum256(EncodeBlock(1, entries))
	const want = "34ebe5c5d6051d946f9d09a6f6f358c660fbcc5311f654f1f04b51dbbe152c30"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the block's SHA-256 is %s, want %s", got, want)
	}
}
