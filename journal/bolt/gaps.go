package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// gapAt returns the gap that seq lies in.
func gapAt(gaps *bbolt.Bucket, seq uint64) (found gap, ok bool, err error) {
	_, value := gaps.Cursor().Seek(key(seq))
	if value == nil {
		return gap{}, false, nil
	}
	if err := unseal("gap", value, &found); err != nil {
		return gap{}, false, err
	}
	return found, found.First <= seq && seq <= found.Last, nil
}

// putGap stores a gap. A piece that continues the one before it, from the same
// retention, joins it; gaps of different retentions stay apart, so that each
// export leads to a hash that the journal remembers.
func putGap(gaps *bbolt.Bucket, piece piece) error {
	missing := piece.gap
	if piece.continues {
		before, ok, err := gapAt(gaps, missing.First-1)
		if err != nil {
			return err
		}
		if ok {
			missing.First = before.First
			if err := gaps.Delete(key(before.Last)); err != nil {
				return err
			}
		}
	}
	return putSealed(gaps, key(missing.Last), missing)
}

// reindex makes the index of a block say what its records say.
func (a *appender) reindex(block uint64) error {
	entries, err := entriesOf(a.records, block, a.seq)
	if err != nil {
		return err
	}
	switch {
	case lastOf(block) > a.seq:
		a.tail = entries // readers keep the old one
		return nil
	case len(entries) == 0:
		return a.index.Delete(key(block))
	}
	return a.index.Put(key(block), encodeBlock(block, entries))
}

func entriesOf(records *bbolt.Bucket, block, last uint64) (tail, error) {
	var entries tail
	cursor := records.Cursor()
	for k, record := cursor.Seek(key(firstOf(block))); k != nil; k, record = cursor.Next() {
		event, err := journal.ParseRecord(record)
		if err != nil {
			return nil, err
		}
		if event.Seq > min(last, lastOf(block)) {
			break
		}
		entries = append(entries, newEntry(event))
	}
	return entries, nil
}
