package layout

import (
	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// GapAt returns the gap that includes seq. If there is none, ok is false.
func GapAt(gaps *bbolt.Bucket, seq uint64) (found Gap, ok bool, err error) {
	_, value := gaps.Cursor().Seek(Key(seq))
	if value == nil {
		return Gap{}, false, nil
	}
	if err := Unseal("gap", value, &found); err != nil {
		return Gap{}, false, err
	}
	return found, found.First <= seq && seq <= found.Last, nil
}

// Reindex rebuilds the index of a block from its records.
func (a *Appender) Reindex(block uint64) error {
	entries, err := EntriesOf(a.Records, block, a.Seq)
	if err != nil {
		return err
	}
	switch {
	case LastOf(block) > a.Seq:
		a.Tail = entries // a new slice, because readers may use the old one
		return nil
	case len(entries) == 0:
		return a.Index.Delete(Key(block))
	}
	return a.Index.Put(Key(block), EncodeBlock(block, entries))
}

// EntriesOf returns the index entries of a block's events, up to the event last, from the stored records.
func EntriesOf(records *bbolt.Bucket, block, last uint64) (Tail, error) {
	var entries Tail
	cursor := records.Cursor()
	for k, record := cursor.Seek(Key(FirstOf(block))); k != nil; k, record = cursor.Next() {
		event, err := journal.ParseRecord(record)
		if err != nil {
			return nil, err
		}
		if event.Seq > min(last, LastOf(block)) {
			break
		}
		entries = append(entries, NewEntry(event))
	}
	return entries, nil
}
