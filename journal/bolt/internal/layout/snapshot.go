package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// SnapshotHead has the fields of a snapshot without its state. The state is stored under another key.
type SnapshotHead struct {
	Seq         uint64    `json:"seq"`
	Fold        string    `json:"fold"`
	Time        time.Time `json:"time"`
	StateSHA256 string    `json:"state_sha256"`
}

func stateHash(state []byte) string {
	digest := sha256.Sum256(state)
	return hex.EncodeToString(digest[:])
}

// ReadSnapshot returns the stored snapshot, or [journal.ErrNoSnapshot]. get returns the value of a key in the snapshot
// bucket. The state must not be used after the end of the transaction.
func ReadSnapshot(get func(key []byte) []byte) (journal.Snapshot, error) {
	stored := get(snapshotHeadKey)
	if stored == nil {
		return journal.Snapshot{}, journal.ErrNoSnapshot
	}
	var described SnapshotHead
	if err := Unseal("snapshot", stored, &described); err != nil {
		return journal.Snapshot{}, err
	}
	state := get(snapshotStateKey)
	if got := stateHash(state); got != described.StateSHA256 {
		return journal.Snapshot{}, fmt.Errorf("state of the snapshot has SHA-256 %s, want %s: %w", got, described.StateSHA256, journal.ErrDamaged)
	}
	return journal.Snapshot{Seq: described.Seq, Fold: described.Fold, Time: described.Time, State: state}, nil
}

// ReadSnapshotHead returns the head of the stored snapshot, or the zero value if there is no snapshot. It does not
// check the state.
func ReadSnapshotHead(get func(key []byte) []byte) (described SnapshotHead, err error) {
	stored := get(snapshotHeadKey)
	if stored == nil {
		return SnapshotHead{}, nil
	}
	return described, Unseal("snapshot", stored, &described)
}

// PutSnapshot stores a snapshot in place of the old snapshot.
func PutSnapshot(bucket *bbolt.Bucket, snapshot journal.Snapshot) error {
	if err := bucket.Put(snapshotStateKey, snapshot.State); err != nil {
		return err
	}
	return PutSealed(bucket, snapshotHeadKey, SnapshotHead{
		Seq: snapshot.Seq, Fold: snapshot.Fold, Time: snapshot.Time.UTC().Round(0), StateSHA256: stateHash(snapshot.State),
	})
}
