package bolt

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// The limits of one read transaction. A read needs several transactions, and the caller's code runs between them, so
// that a caller that is slow or appends does not block others.
const (
	chunkEvents = 256
	chunkBytes  = 1 << 20
	chunkBlocks = 256
)

// scan is the state of one call of [Store.Read].
type scan struct {
	query journal.Query
	// low and high limit the sequence numbers that are still to be read, inclusive.
	low, high uint64
	// An event must have all of terms, and one of types.
	terms []layout.Term
	types []layout.Term
	// since and until limit the time in nanoseconds, inclusive.
	since, until int64
	yielded      int
}

// newScan returns the scan for a query. last is the number of the journal's last event.
func newScan(query journal.Query, last uint64) *scan {
	s := &scan{query: query, low: query.After + 1, high: last, since: math.MinInt64, until: math.MaxInt64}
	if query.After == math.MaxUint64 {
		s.low, s.high = 1, 0
	}
	if query.Before != 0 {
		s.high = min(s.high, query.Before-1)
	}
	if !query.Since.IsZero() {
		s.since = nanos(query.Since)
	}
	if !query.Until.IsZero() {
		s.until = nanos(query.Until)
	}
	for tag, value := range map[byte]string{
		layout.TermNode: query.Node, layout.TermKind: query.Kind, layout.TermName: query.Name, layout.TermUID: query.UID, layout.TermAction: query.Action,
	} {
		if value != "" {
			s.terms = append(s.terms, layout.NewTerm(tag, value))
		}
	}
	for _, t := range query.Types {
		s.types = append(s.types, layout.NewTerm(layout.TermType, string(t)))
	}
	return s
}

// nanos returns [time.Time.UnixNano], or the smallest or largest number for a time outside its range.
func nanos(t time.Time) int64 {
	switch {
	case t.Year() < 1700:
		return math.MinInt64
	case t.Year() > 2250:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func (s *scan) done() bool {
	return s.low > s.high || (s.query.Limit > 0 && s.yielded >= s.query.Limit)
}

// indexed reports whether the query has a condition for which there is an index.
func (s *scan) indexed() bool {
	return len(s.terms) > 0 || len(s.types) > 0 || s.since != math.MinInt64 || s.until != math.MaxInt64
}

// postings is one block of the index: a [layout.Block] on disk or the [layout.Tail] in memory.
type postings interface {
	Find(layout.Term) []uint64
	Span() (earliest, latest int64)
}

// chunk reads the next events, within the limits of one transaction. The caller repeats it until s.done().
func (s *scan) chunk(tx *bbolt.Tx, unfinished layout.Tail) ([]journal.Event, error) {
	t, err := layout.TablesOf(tx)
	if err != nil {
		return nil, err
	}
	c := collector{scan: s, records: t.Records}
	if !s.indexed() {
		err := c.all()
		return c.events, err
	}
	for range chunkBlocks {
		if s.done() || c.full() {
			break
		}
		if err := s.block(&c, t.Index, unfinished); err != nil {
			return nil, err
		}
	}
	return c.events, nil
}

// block reads the next block of the index, or the rest of a block that it has begun.
func (s *scan) block(c *collector, index *bbolt.Bucket, unfinished layout.Tail) error {
	number := layout.BlockOf(s.low)
	if s.query.Reverse {
		number = layout.BlockOf(s.high)
	}
	found, err := s.open(number, index, unfinished)
	if err != nil {
		return err
	}
	if found != nil {
		for _, seq := range s.candidates(number, found) {
			if s.done() || c.full() {
				return nil
			}
			if err := c.take(seq); err != nil {
				return err
			}
		}
		if s.done() || c.full() {
			return nil
		}
	}
	if !s.query.Reverse {
		s.low = max(s.low, layout.LastOf(number)+1)
	} else {
		s.high = min(s.high, layout.FirstOf(number)-1)
	}
	return nil
}

// open returns the index of a block; nil if retention moved all its events out.
func (s *scan) open(number uint64, index *bbolt.Bucket, unfinished layout.Tail) (postings, error) {
	if len(unfinished) > 0 && number == layout.BlockOf(unfinished[0].Seq) {
		return unfinished, nil
	}
	stored := index.Get(layout.Key(number))
	if stored == nil {
		return nil, nil
	}
	decoded, err := layout.DecodeBlock(number, stored)
	if err != nil {
		return nil, err
	}
	return decoded, nil
}

// candidates returns the numbers of the block's events that may match, in the query's order.
func (s *scan) candidates(number uint64, found postings) []uint64 {
	earliest, latest := found.Span()
	if latest < s.since || earliest > s.until {
		return nil
	}
	low, high := max(s.low, layout.FirstOf(number)), min(s.high, layout.LastOf(number))
	var seqs []uint64
	if len(s.terms)+len(s.types) == 0 {
		for seq := low; seq <= high; seq++ {
			seqs = append(seqs, seq)
		}
	} else {
		seqs = slices.DeleteFunc(s.narrow(found), func(seq uint64) bool { return seq < low || seq > high })
	}
	if s.query.Reverse {
		slices.Reverse(seqs)
	}
	return seqs
}

// narrow returns the numbers of the events that have all terms, and one of the types if there are any.
func (s *scan) narrow(found postings) []uint64 {
	var lists [][]uint64
	for _, t := range s.terms {
		list := found.Find(t)
		if len(list) == 0 {
			return nil
		}
		lists = append(lists, list)
	}
	if len(s.types) > 0 {
		var union []uint64
		for _, t := range s.types {
			union = append(union, found.Find(t)...)
		}
		slices.Sort(union)
		lists = append(lists, slices.Compact(union))
	}
	narrowed := lists[0]
	for _, list := range lists[1:] {
		narrowed = slices.DeleteFunc(narrowed, func(seq uint64) bool {
			_, both := slices.BinarySearch(list, seq)
			return !both
		})
	}
	return narrowed
}

// collector collects one chunk and advances the scan.
type collector struct {
	scan    *scan
	records *bbolt.Bucket
	events  []journal.Event
	bytes   int
	// parsed is the number of parsed records.
	parsed int
}

func (c *collector) full() bool {
	return len(c.events) >= chunkEvents || c.bytes >= chunkBytes || c.parsed >= 8*chunkEvents
}

// take reads the event, adds it if it matches, and advances the scan past it.
func (c *collector) take(seq uint64) error {
	if record := c.records.Get(layout.Key(seq)); record != nil {
		if err := c.add(seq, record); err != nil {
			return err
		}
	}
	c.advance(seq)
	return nil
}

func (c *collector) add(seq uint64, record []byte) error {
	event, err := journal.ParseRecord(record)
	if err != nil {
		return fmt.Errorf("event %d: %w", seq, err)
	}
	if event.Seq != seq {
		return fmt.Errorf("event %d is stored as %d: %w", event.Seq, seq, journal.ErrDamaged)
	}
	c.parsed++
	c.bytes += len(record)
	if c.scan.query.Matches(event) {
		c.events = append(c.events, event)
		c.scan.yielded++
	}
	return nil
}

func (c *collector) advance(seq uint64) {
	if c.scan.query.Reverse {
		c.scan.high = seq - 1
	} else {
		c.scan.low = seq + 1
	}
}

// all reads the next events in the order of their numbers, without the index.
func (c *collector) all() error {
	cursor := c.records.Cursor()
	from, step := c.scan.low, cursor.Next
	if c.scan.query.Reverse {
		from, step = c.scan.high, cursor.Prev
	}
	k, record := cursor.Seek(layout.Key(from))
	switch {
	case !c.scan.query.Reverse || string(k) == string(layout.Key(from)):
	case k == nil: // a gap, and nothing after it
		k, record = cursor.Last()
	default: // Seek went past a gap
		k, record = cursor.Prev()
	}
	for ; k != nil && !c.full() && !c.scan.done(); k, record = step() {
		seq, err := layout.Number(k)
		if err != nil {
			return err
		}
		if seq < c.scan.low || seq > c.scan.high {
			break
		}
		if err := c.add(seq, record); err != nil {
			return err
		}
		c.advance(seq)
	}
	if !c.full() { // no more events are stored in the range
		c.scan.low, c.scan.high = 1, 0
	}
	return nil
}
