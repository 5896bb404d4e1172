package rescue

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// Report is the result of a verification.
type Report struct {
	Path       string `json:"path"`
	Bytes      int64  `json:"bytes"`
	Format     int    `json:"format"`
	JournalID  string `json:"journal_id"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	FirstSeq   uint64 `json:"first_seq"`
	LastSeq    uint64 `json:"last_seq"`
	// Head is the number and the hash of the last event. It is zero if the chain of hashes is damaged.
	Head journal.Position `json:"head,omitzero"`
	// Events is the number of records with a correct hash.
	Events uint64 `json:"events"`
	// Gaps is the number of ranges of events that retention moved out.
	Gaps        int    `json:"gaps,omitempty"`
	SnapshotSeq uint64 `json:"snapshot_seq,omitempty"`
}

// Verify checks everything in the journal at path: bbolt's pages, with this package's code and with bbolt's own check;
// the hash of every record; the gaps; the snapshot; and that the index matches the records. The error wraps
// [journal.ErrDamaged] if something is wrong, [journal.ErrOtherFormat] for an unknown format, [journal.ErrNotAJournal]
// for a file that never was a journal, and [journal.ErrLocked] while an EKCO has the journal open for writing.
//
// A damaged file can crash the process, because bbolt's check also runs; see [Child].
func Verify(path string) (Report, error) {
	neighbours := FindNeighbourFiles(path)
	lock, err := files.Acquire(path, true)
	if err != nil {
		return Report{}, err
	}
	report := Report{Path: path}
	if _, err = files.Regular(path); err == nil {
		report, err = verify(path, true)
	}
	if err == nil {
		err = boltCheck(path)
	}
	return report, errors.Join(neighbours.ClassifyError(path, false, err), files.Release(lock, true))
}

// CheckFile checks a file as thoroughly as each opening of a journal does, in this process and without a lock. Unlike
// [Verify], it does not compare the index with the records, and does not run bbolt's own check.
func CheckFile(path string) error {
	_, err := verify(path, false)
	return err
}

// verify checks a file without bbolt. If thorough is set, it compares the index with the records; otherwise it checks
// only the checksums of the index.
func verify(path string, thorough bool) (Report, error) {
	report := Report{Path: path}
	file, err := openPages(path)
	if err != nil {
		return report, fmt.Errorf("verify journal %s: %w", path, recognise(path, err, nil))
	}
	defer file.Close()
	report.Bytes = file.size
	v := verifier{tree: newTree(file), report: &report, thorough: thorough}
	if err := v.run(); err != nil {
		return report, fmt.Errorf("verify journal %s: %w", path, recognise(path, err, v.buckets))
	}
	return report, nil
}

// verifier has the state of one verification.
type verifier struct {
	*tree
	report   *Report
	thorough bool
	buckets  map[string][]byte
	gaps     []layout.Gap
	head     layout.Head
	chain    chain
}

func (v *verifier) run() error {
	var err error
	if v.buckets, err = v.tree.buckets(); err != nil {
		return err
	}
	want := []string{string(layout.GapsBucket), string(layout.IndexBucket), string(layout.MetaBucket), string(layout.RecordsBucket), string(layout.SnapshotBucket)}
	if got := slices.Sorted(maps.Keys(v.buckets)); !slices.Equal(got, want) {
		return damaged("the buckets are %q, want %q", got, want)
	}
	for _, check := range []func() error{v.checkMeta, v.checkGaps, v.checkRecords, v.checkIndex, v.checkSnapshot, v.checkFree} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// values returns copies of all values of a small bucket, by key.
func (v *verifier) values(name []byte) (map[string][]byte, error) {
	found := make(map[string][]byte)
	err := v.each(string(name), v.buckets[string(name)], func(key, value []byte) error {
		found[string(key)] = bytes.Clone(value)
		return nil
	})
	return found, err
}

func (v *verifier) checkMeta() error {
	meta, err := v.values(layout.MetaBucket)
	if err != nil {
		return err
	}
	var id layout.Identity
	if err := layout.Unseal("identity", meta[string(layout.IdentityKey)], &id); err != nil {
		return err
	}
	if id.Format != journal.Format {
		return fmt.Errorf("format is %d, this EKCO reads %d: %w; use the EKCO that wrote it", id.Format, journal.Format, journal.ErrOtherFormat)
	}
	v.report.Format, v.report.JournalID, v.report.ClusterUID = id.Format, id.JournalID, id.ClusterUID
	v.head, err = layout.DecodeHead(meta[string(layout.HeadKey)])
	v.report.LastSeq = v.head.Seq
	return err
}

func (v *verifier) checkGaps() error {
	err := v.each(string(layout.GapsBucket), v.buckets[string(layout.GapsBucket)], func(k, value []byte) error {
		var missing layout.Gap
		if err := layout.Unseal("gap", value, &missing); err != nil {
			return err
		}
		if !bytes.Equal(k, layout.Key(missing.Last)) || missing.First > missing.Last {
			return damaged("gap %d to %d is stored under %x", missing.First, missing.Last, k)
		}
		v.gaps = append(v.gaps, missing)
		return nil
	})
	v.report.Gaps = len(v.gaps)
	return err
}

func (v *verifier) checkRecords() error {
	v.chain = chain{gaps: v.gaps, thorough: v.thorough}
	err := v.each(string(layout.RecordsBucket), v.buckets[string(layout.RecordsBucket)], func(k, record []byte) error {
		seq, err := layout.Number(k)
		if err != nil {
			return err
		}
		return v.chain.next(seq, record)
	})
	if err != nil {
		return err
	}
	v.report.FirstSeq, v.report.Events = v.chain.first, v.chain.events
	if v.chain.head != v.head || len(v.chain.gaps) > 0 {
		return damaged("the last event is %d, the journal should end at %d", v.chain.head.Seq, v.head.Seq)
	}
	v.report.Head = journal.Position{Seq: v.head.Seq, Hash: v.head.Hash}
	return nil
}

func (v *verifier) checkIndex() error {
	due := v.chain.blocks
	err := v.each(string(layout.IndexBucket), v.buckets[string(layout.IndexBucket)], func(k, value []byte) error {
		stored, err := layout.Number(k)
		if err != nil {
			return err
		}
		if _, err := layout.CheckBlock(stored, value); err != nil {
			return err
		}
		if len(due) == 0 || due[0].number != stored {
			return damaged("index block %d has no events", stored)
		}
		if v.thorough && !bytes.Equal(due[0].bytes, value) {
			return damaged("index block %d does not match its events", stored)
		}
		due = due[1:]
		return nil
	})
	if err == nil && len(due) > 0 {
		err = damaged("index block %d is missing", due[0].number)
	}
	return err
}

func (v *verifier) checkSnapshot() error {
	values, err := v.values(layout.SnapshotBucket)
	if err != nil {
		return err
	}
	snapshot, err := layout.ReadSnapshot(func(key []byte) []byte { return values[string(key)] })
	if errors.Is(err, journal.ErrNoSnapshot) && len(values) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshot: %w", asDamage(err))
	}
	if snapshot.Seq > v.head.Seq {
		return damaged("the snapshot is at event #%d, the journal ends at event #%d", snapshot.Seq, v.head.Seq)
	}
	v.report.SnapshotSeq = snapshot.Seq
	return nil
}

func asDamage(err error) error {
	if errors.Is(err, journal.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", err, journal.ErrDamaged)
}

// boltCheck runs bbolt's own check.
func boltCheck(path string) error {
	db, err := files.OpenDB(path, true)
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		var problems []error
		for problem := range tx.Check() {
			problems = append(problems, problem)
		}
		return errors.Join(problems...)
	})
	if err != nil {
		err = fmt.Errorf("verify journal %s: bbolt's check: %w: %w", path, err, journal.ErrDamaged)
	}
	return errors.Join(err, db.Close())
}
