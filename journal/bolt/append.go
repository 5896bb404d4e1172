package bolt

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// appender puts events at the end of a journal within one transaction.
type appender struct {
	tables
	head
	// tail is the index of the unfinished block.
	tail tail
}

// append gives the event its number, time and hash, and writes it.
func (a *appender) append(event *journal.Event, now time.Time) error {
	event.Seq = a.seq + 1
	event.Time = now.UTC().Round(0)
	return a.put(event.Seq, event.Seal(a.hash), *event)
}

// put writes a record that has its place already.
func (a *appender) put(seq uint64, record []byte, event journal.Event) error {
	if err := a.records.Put(key(seq), record); err != nil {
		return fmt.Errorf("put event %d: %w", seq, err)
	}
	a.head = head{seq: seq, hash: event.Hash}
	a.tail = append(a.tail, newEntry(event))
	if seq == lastOf(blockOf(seq)) {
		return a.endBlock()
	}
	return nil
}

// endBlock stores the index of the block that the tail is of.
func (a *appender) endBlock() error {
	block := blockOf(a.tail[0].seq)
	if err := a.index.Put(key(block), encodeBlock(block, a.tail)); err != nil {
		return fmt.Errorf("put index block %d: %w", block, err)
	}
	a.tail = nil
	return nil
}

// leap passes over events that were moved out.
func (a *appender) leap(missing gap) error {
	a.head = head{seq: missing.Last, hash: missing.LastHash}
	if len(a.tail) > 0 && blockOf(a.tail[0].seq) != blockOf(missing.Last+1) {
		return a.endBlock()
	}
	return nil
}

// finish writes the new end of the journal.
func (a *appender) finish() error {
	return a.meta.Put(headKey, a.encode())
}
