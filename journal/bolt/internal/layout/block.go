package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/replicatedhq/ekco/journal"
)

// BlockSize is how many consecutive sequence numbers an index block covers.
const BlockSize = 1024

// BlockOf returns the number of the index block of an event.
func BlockOf(seq uint64) uint64 { return (seq - 1) / BlockSize }

// FirstOf returns the lowest sequence number of a block.
func FirstOf(block uint64) uint64 { return block*BlockSize + 1 }

// LastOf returns the highest sequence number of a block.
func LastOf(block uint64) uint64 { return (block + 1) * BlockSize }

// Term is the hash of one property of an event, for the index. Different properties can have the same Term, so a reader
// must check whether an event that the index returns really matches.
type Term uint32

// The tags distinguish the properties of an event in [NewTerm].
const (
	TermNode   = 'n'
	TermKind   = 'k'
	TermName   = 'm'
	TermUID    = 'u'
	TermAction = 'a'
	TermType   = 't'
)

// NewTerm returns the 32-bit FNV-1a hash of the tag and the value.
func NewTerm(tag byte, value string) Term {
	const prime = 16777619
	hash := (uint32(2166136261) ^ uint32(tag)) * prime
	for i := range len(value) {
		hash = (hash ^ uint32(value[i])) * prime
	}
	return Term(hash)
}

// Entry is the part of the index for one event.
type Entry struct {
	Seq   uint64
	nanos int64
	terms [6]Term
	count int
}

// NewEntry returns the entry of the event.
func NewEntry(event journal.Event) Entry {
	e := Entry{Seq: event.Seq, nanos: event.Time.UnixNano()}
	add := func(tag byte, value string) {
		if value != "" {
			e.terms[e.count] = NewTerm(tag, value)
			e.count++
		}
	}
	add(TermNode, event.Subject.Node)
	add(TermKind, event.Subject.Kind)
	add(TermName, event.Subject.Name)
	add(TermUID, event.Subject.UID)
	add(TermAction, event.Action)
	add(TermType, string(event.Type))
	return e
}

func (e Entry) has(wanted Term) bool { return slices.Contains(e.terms[:e.count], wanted) }

// A block consists of these parts, all numbers little endian:
//   - the header: magic, number of events, block number, earliest and latest time in nanoseconds since 1970, number of
//     terms, number of postings;
//   - the sorted terms;
//   - for each term, the index after its last posting;
//   - the postings: sequence numbers minus the first number of the block;
//   - the SHA-256 hash of everything before.
const (
	blockMagic      = "EIX1"
	blockHeaderSize = 40
)

// Block is a decoded index block. It refers to the stored bytes and does not copy them.
type Block struct {
	number           uint64
	earliest, latest int64
	terms            []byte
	ends             []byte
	postings         []byte
}

// EncodeBlock returns the stored bytes of a block. entries are the entries of its events, in order.
func EncodeBlock(number uint64, entries []Entry) []byte {
	pairs := make([]uint64, 0, len(entries)*6)
	earliest, latest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, e := range entries {
		earliest, latest = min(earliest, e.nanos), max(latest, e.nanos)
		for _, t := range e.terms[:e.count] {
			pairs = append(pairs, uint64(t)<<16|(e.Seq-FirstOf(number)))
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	var terms, ends, postings []byte
	for i, pair := range pairs {
		postings = binary.LittleEndian.AppendUint16(postings, uint16(pair))
		if i+1 == len(pairs) || pairs[i+1]>>16 != pair>>16 {
			terms = binary.LittleEndian.AppendUint32(terms, uint32(pair>>16))
			ends = binary.LittleEndian.AppendUint32(ends, uint32(i+1))
		}
	}
	b := append(make([]byte, 0, blockHeaderSize+len(terms)*2+len(postings)+sha256.Size), blockMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint64(b, uint64(earliest))
	b = binary.LittleEndian.AppendUint64(b, uint64(latest))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(terms)/4))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(postings)/2))
	b = append(append(append(b, terms...), ends...), postings...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// DecodeBlock reads the stored bytes of a block. It checks the lengths, so that a lookup cannot panic, but not the
// checksum; see [CheckBlock].
func DecodeBlock(number uint64, b []byte) (Block, error) {
	if len(b) < blockHeaderSize+sha256.Size || string(b[:len(blockMagic)]) != blockMagic {
		return Block{}, fmt.Errorf("index block %d has no header: %w", number, journal.ErrDamaged)
	}
	decoded := Block{
		number:   binary.LittleEndian.Uint64(b[8:]),
		earliest: int64(binary.LittleEndian.Uint64(b[16:])), latest: int64(binary.LittleEndian.Uint64(b[24:])),
	}
	terms := 4 * int(binary.LittleEndian.Uint32(b[32:]))
	postings := 2 * int(binary.LittleEndian.Uint32(b[36:]))
	body := b[blockHeaderSize : len(b)-sha256.Size]
	if decoded.number != number || len(body) != 2*terms+postings {
		return Block{}, fmt.Errorf("index block %d has a wrong header: %w", number, journal.ErrDamaged)
	}
	decoded.terms, decoded.ends, decoded.postings = body[:terms], body[terms:2*terms], body[2*terms:]
	return decoded, nil
}

// CheckBlock is [DecodeBlock] that also checks the checksum.
func CheckBlock(number uint64, b []byte) (Block, error) {
	decoded, err := DecodeBlock(number, b)
	if err != nil {
		return Block{}, err
	}
	content := len(b) - sha256.Size
	if sum := sha256.Sum256(b[:content]); !bytes.Equal(sum[:], b[content:]) {
		return Block{}, fmt.Errorf("index block %d does not have its checksum: %w", number, journal.ErrDamaged)
	}
	return decoded, nil
}

// Find returns the sequence numbers of the events with the term, in order.
func (b Block) Find(wanted Term) []uint64 {
	count := len(b.terms) / 4
	at := sort.Search(count, func(i int) bool { return b.term(i) >= wanted })
	if at == count || b.term(at) != wanted {
		return nil
	}
	from, to := 0, b.end(at)
	if at > 0 {
		from = b.end(at - 1)
	}
	if from > to || 2*to > len(b.postings) {
		return nil
	}
	found := make([]uint64, 0, to-from)
	for i := from; i < to; i++ {
		found = append(found, FirstOf(b.number)+uint64(binary.LittleEndian.Uint16(b.postings[2*i:])))
	}
	return found
}

func (b Block) term(i int) Term { return Term(binary.LittleEndian.Uint32(b.terms[4*i:])) }
func (b Block) end(i int) int   { return int(binary.LittleEndian.Uint32(b.ends[4*i:])) }

// Span returns the earliest and the latest time of the block's events, in nanoseconds since 1970.
func (b Block) Span() (earliest, latest int64) { return b.earliest, b.latest }

// Tail is the index of the last, unfinished block. Entries are only appended, so a reader can keep a copy of the slice.
type Tail []Entry

// Find returns the sequence numbers of the events with the term, in order.
func (t Tail) Find(wanted Term) []uint64 {
	var found []uint64
	for _, e := range t {
		if e.has(wanted) {
			found = append(found, e.Seq)
		}
	}
	return found
}

// Span returns the earliest and the latest time of the events, in nanoseconds since 1970.
func (t Tail) Span() (earliest, latest int64) {
	earliest, latest = math.MaxInt64, math.MinInt64
	for _, e := range t {
		earliest, latest = min(earliest, e.nanos), max(latest, e.nanos)
	}
	return earliest, latest
}
