package layout

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Appender appends events to a journal in one transaction.
type Appender struct {
	Tables
	Head
	// Tail is the index of the last block, which is unfinished and not stored yet.
	Tail Tail
}

// Append sets the event's number, time and hash, and writes it.
func (a *Appender) Append(event *journal.Event, now time.Time) error {
	event.Seq = a.Seq + 1
	event.Time = now.UTC().Round(0)
	return a.Put(event.Seq, event.Seal(a.Hash), *event)
}

// Put writes a record that already has its number and hash.
func (a *Appender) Put(seq uint64, record []byte, event journal.Event) error {
	if err := a.Records.Put(Key(seq), record); err != nil {
		return fmt.Errorf("put event %d: %w", seq, err)
	}
	a.Head = Head{Seq: seq, Hash: event.Hash}
	a.Tail = append(a.Tail, NewEntry(event))
	if seq == LastOf(BlockOf(seq)) {
		return a.endBlock()
	}
	return nil
}

// endBlock stores the tail as an index block, and empties it.
func (a *Appender) endBlock() error {
	block := BlockOf(a.Tail[0].Seq)
	if err := a.Index.Put(Key(block), EncodeBlock(block, a.Tail)); err != nil {
		return fmt.Errorf("put index block %d: %w", block, err)
	}
	a.Tail = nil
	return nil
}

// SkipGap moves the end of the journal behind a gap, without writing the gap's events.
func (a *Appender) SkipGap(missing Gap) error {
	a.Head = Head{Seq: missing.Last, Hash: missing.LastHash}
	if len(a.Tail) > 0 && BlockOf(a.Tail[0].Seq) != BlockOf(missing.Last+1) {
		return a.endBlock()
	}
	return nil
}

// Finish stores the new end of the journal. Call it once, after the last event.
func (a *Appender) Finish() error {
	return a.Meta.Put(HeadKey, a.Encode())
}
