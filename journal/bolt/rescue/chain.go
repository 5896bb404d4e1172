package rescue

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// chain checks the records of a journal in their order.
type chain struct {
	// gaps are the gaps after the records that are already checked.
	gaps     []layout.Gap
	thorough bool

	head   layout.Head
	first  uint64
	events uint64
	// blocks lists the blocks that the index must have for these records. They have their bytes if thorough is set.
	blocks []indexBlock
	// open is the index block of the last record; nil if that record completed the block.
	open    *indexBlock
	entries []layout.Entry
}

// indexBlock is a block that the index must have.
type indexBlock struct {
	number uint64
	bytes  []byte
}

// next checks the number and the hash of the next stored record.
func (c *chain) next(seq uint64, record []byte) error {
	for len(c.gaps) > 0 && c.gaps[0].First == c.head.Seq+1 {
		c.head = layout.Head{Seq: c.gaps[0].Last, Hash: c.gaps[0].LastHash}
		c.gaps = c.gaps[1:]
	}
	if seq != c.head.Seq+1 {
		return damaged("event %d follows event %d", seq, c.head.Seq)
	}
	hash, err := journal.CheckRecord(c.head.Hash, record)
	if err != nil {
		return fmt.Errorf("event %d: %w", seq, err)
	}
	if !hasSeq(record, seq) {
		return damaged("the record at %d is another event", seq)
	}
	if c.open != nil && c.open.number != layout.BlockOf(seq) {
		c.endBlock() // retention moved the block's last events out
	}
	if c.first == 0 {
		c.first = seq
	}
	if c.open == nil {
		c.open = &indexBlock{number: layout.BlockOf(seq)}
	}
	c.events++
	c.head = layout.Head{Seq: seq, Hash: hash}
	if c.thorough {
		event, err := journal.ParseRecord(record)
		if err != nil {
			return err
		}
		c.entries = append(c.entries, layout.NewEntry(event))
	}
	if seq == layout.LastOf(layout.BlockOf(seq)) {
		c.endBlock()
	}
	return nil
}

// endBlock adds the open block to the blocks that the index must have.
func (c *chain) endBlock() {
	block := *c.open
	if c.thorough {
		block.bytes = layout.EncodeBlock(block.number, c.entries)
	}
	c.blocks = append(c.blocks, block)
	c.open, c.entries = nil, nil
}

// hasSeq reports whether the record begins with this sequence number.
func hasSeq(record []byte, seq uint64) bool {
	start := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	return bytes.HasPrefix(record, append(start, ','))
}
