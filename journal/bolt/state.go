package bolt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// snapshotHead describes the snapshot whose state is stored beside it.
type snapshotHead struct {
	Seq         uint64    `json:"seq"`
	Fold        string    `json:"fold"`
	Time        time.Time `json:"time"`
	StateSHA256 string    `json:"state_sha256"`
}

func sum(state []byte) string {
	digest := sha256.Sum256(state)
	return hex.EncodeToString(digest[:])
}

// readSnapshot returns [journal.ErrNoSnapshot] when there is none, and a state
// that lives as long as the transaction.
func readSnapshot(get func(key []byte) []byte) (journal.Snapshot, error) {
	stored := get(snapshotHeadKey)
	if stored == nil {
		return journal.Snapshot{}, journal.ErrNoSnapshot
	}
	var described snapshotHead
	if err := unseal("snapshot", stored, &described); err != nil {
		return journal.Snapshot{}, err
	}
	state := get(snapshotStateKey)
	if got := sum(state); got != described.StateSHA256 {
		return journal.Snapshot{}, fmt.Errorf("state of the snapshot has SHA-256 %s, want %s: %w", got, described.StateSHA256, journal.ErrDamaged)
	}
	return journal.Snapshot{Seq: described.Seq, Fold: described.Fold, Time: described.Time, State: state}, nil
}

func putSnapshot(bucket *bbolt.Bucket, snapshot journal.Snapshot) error {
	if err := bucket.Put(snapshotStateKey, snapshot.State); err != nil {
		return err
	}
	return putSealed(bucket, snapshotHeadKey, snapshotHead{
		Seq: snapshot.Seq, Fold: snapshot.Fold, Time: snapshot.Time.UTC().Round(0), StateSHA256: sum(snapshot.State),
	})
}

// SaveSnapshot implements [journal.Store].
func (s *Store) SaveSnapshot(ctx context.Context, snapshot journal.Snapshot) error {
	err := s.submit(ctx, &write{change: func(a *appender) error {
		if snapshot.Seq > a.seq {
			return refuse("the journal ends at %d", a.seq)
		}
		return putSnapshot(a.snapshot, snapshot)
	}})
	if err != nil {
		return fmt.Errorf("save snapshot at %d in journal %s: %w", snapshot.Seq, s.path, err)
	}
	return nil
}

// Snapshot implements [journal.Store].
func (s *Store) Snapshot(ctx context.Context) (snapshot journal.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return journal.Snapshot{}, err
	}
	err = s.view(func(tx *bbolt.Tx) error {
		t, err := tablesOf(tx)
		if err != nil {
			return err
		}
		snapshot, err = readSnapshot(t.snapshot.Get)
		snapshot.State = bytes.Clone(snapshot.State)
		return err
	})
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("read snapshot of journal %s: %w", s.path, err)
	}
	return snapshot, nil
}

// BindCluster implements [journal.Store].
func (s *Store) BindCluster(ctx context.Context, uid string) error {
	s.mu.RLock()
	id := s.id
	s.mu.RUnlock()
	if s.isClosing() {
		return fmt.Errorf("bind journal %s: %w", s.path, journal.ErrClosed)
	}
	bound, err := journal.Bind(id.JournalID, id.ClusterUID, uid)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if bound == id.ClusterUID {
		return nil
	}
	err = s.submit(ctx, &write{change: func(a *appender) error {
		var current identity
		if err := unseal("identity", a.meta.Get(identityKey), &current); err != nil {
			return err
		}
		if current.ClusterUID, err = journal.Bind(current.JournalID, current.ClusterUID, uid); err != nil {
			return refusal{err}
		}
		return putSealed(a.meta, identityKey, current)
	}})
	if err != nil {
		return fmt.Errorf("bind journal %s: %w", s.path, err)
	}
	return nil
}

// Stat implements [journal.Store].
func (s *Store) Stat(ctx context.Context) (journal.Stat, error) {
	if err := ctx.Err(); err != nil {
		return journal.Stat{}, err
	}
	s.mu.RLock()
	stat := journal.Stat{
		JournalID: s.id.JournalID, Format: s.id.Format, ClusterUID: s.id.ClusterUID, LastSeq: s.end.seq, Path: s.path,
	}
	s.mu.RUnlock()
	err := s.view(func(tx *bbolt.Tx) error { return fillStat(tx, &stat) })
	if err != nil {
		return journal.Stat{}, fmt.Errorf("stat journal %s: %w", s.path, err)
	}
	return stat, nil
}

func fillStat(tx *bbolt.Tx, stat *journal.Stat) error {
	t, err := tablesOf(tx)
	if err != nil {
		return err
	}
	if err := fillBounds(t, stat); err != nil {
		return err
	}
	snapshot, err := readSnapshotHead(t.snapshot.Get)
	if err != nil {
		return err
	}
	stat.SnapshotSeq = snapshot.Seq
	return fillSize(tx, stat)
}

func readSnapshotHead(get func(key []byte) []byte) (described snapshotHead, err error) {
	stored := get(snapshotHeadKey)
	if stored == nil {
		return snapshotHead{}, nil
	}
	return described, unseal("snapshot", stored, &described)
}

// fillBounds finds the first and last events and counts by the gaps.
func fillBounds(t tables, stat *journal.Stat) error {
	k, record := t.records.Cursor().First()
	if k == nil {
		return nil
	}
	first, err := journal.ParseRecord(record)
	if err != nil {
		return err
	}
	last, err := journal.ParseRecord(t.records.Get(key(stat.LastSeq)))
	if err != nil {
		return err
	}
	stat.FirstSeq, stat.FirstTime, stat.LastTime, stat.Events = first.Seq, first.Time, last.Time, stat.LastSeq
	return t.gaps.ForEach(func(_, value []byte) error {
		var missing gap
		if err := unseal("gap", value, &missing); err != nil {
			return err
		}
		stat.Events -= missing.Last - missing.First + 1
		return nil
	})
}
