package rescue

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// A scavenger's output is lines of one letter and its content.
const (
	lineIdentity = 'I'
	lineGap      = 'G'
	lineRecord   = 'R'
	lineSnapshot = 'S'
	lineEnd      = 'E' // scavenged
)

// scavenged is the last line of a scavenger that finished.
type scavenged struct {
	// LostAtLeast is how many events must have existed after the last one that was written.
	LostAtLeast uint64 `json:"lost_at_least"`
}

// scavenge writes the longest prefix of the journal that is left in a damaged file. It reads every page, reachable or
// not: the hash of a record proves its place.
func scavenge(path string, out *bufio.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := scavenger{pages: &pages{File: file}, out: out, gaps: make(map[uint64][]layout.Gap)}
	if err := s.size(); err != nil {
		return err
	}
	if err := s.collect(); err != nil {
		return err
	}
	return s.write()
}

type scavenger struct {
	*pages
	out        *bufio.Writer
	identities []layout.Identity
	gaps       map[uint64][]layout.Gap // by their first event
	records    []place
	snapshots  []journal.Snapshot
}

// place is the position of a record, or of an older copy of it.
type place struct {
	seq    uint64
	offset int64
	length int
}

// size works with one meta page, or none.
func (s *scavenger) size() error {
	info, err := s.Stat()
	if err != nil {
		return err
	}
	s.pages.size, s.pageSize = info.Size(), int64(os.Getpagesize())
	if meta, err := s.readMeta(0); err == nil {
		s.pageSize = int64(meta.pageSize)
	}
	s.meta.end = uint64(s.pages.size / s.pageSize)
	return nil
}

func (s *scavenger) collect() error {
	for id := uint64(2); id < s.meta.end; id++ {
		if err := s.collectPage(id); err != nil {
			return err
		}
	}
	// Of gaps with the same first event, the longest is the newest.
	for _, gaps := range s.gaps {
		slices.SortFunc(gaps, func(a, b layout.Gap) int { return cmp.Compare(b.Last, a.Last) })
	}
	slices.SortFunc(s.records, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

// collectPage skips a page that is damaged or not a leaf.
func (s *scavenger) collectPage(id uint64) error {
	read, err := s.read(id, 0)
	if errors.Is(err, journal.ErrDamaged) || (err == nil && read.flags != leafPage) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	s.page(read.bytes, read.count, int64(id)*s.pageSize)
	return nil
}

// page collects from a leaf page at offset.
func (s *scavenger) page(b []byte, count int, offset int64) {
	values := make(map[string][]byte)
	for i := range count {
		e, err := elementOf(b, true, i)
		if err != nil {
			continue
		}
		switch {
		case e.flags == bucketLeaf:
			s.inlined(e.value, offset+e.at)
		case !s.numbered(e, offset+e.at):
			values[string(e.key)] = e.value
		}
	}
	s.named(values)
}

func (s *scavenger) inlined(value []byte, offset int64) {
	if len(value) < bucketHeader+pageHeader || order.Uint64(value) != 0 {
		return
	}
	b := value[bucketHeader:]
	s.page(b, int(order.Uint16(b[10:])), offset+bucketHeader)
}

// numbered reports whether the element is a record or a gap.
func (s *scavenger) numbered(e element, offset int64) bool {
	seq, err := layout.Number(e.key)
	if err != nil {
		return false
	}
	if states(e.value, seq) {
		s.records = append(s.records, place{seq: seq, offset: offset, length: len(e.value)})
		return true
	}
	var missing layout.Gap
	if layout.Unseal("gap", e.value, &missing) != nil || missing.Last != seq || missing.First > missing.Last {
		return false
	}
	s.gaps[missing.First] = append(s.gaps[missing.First], missing)
	return true
}

func (s *scavenger) named(values map[string][]byte) {
	var id layout.Identity
	if layout.Unseal("identity", values[string(layout.IdentityKey)], &id) == nil && id.JournalID != "" {
		s.identities = append(s.identities, id)
	}
	snapshot, err := layout.ReadSnapshot(func(key []byte) []byte { return values[string(key)] })
	if err == nil {
		snapshot.State = bytes.Clone(snapshot.State)
		s.snapshots = append(s.snapshots, snapshot)
	}
}

// write follows the chain through the collected records.
func (s *scavenger) write() error {
	if err := s.writeIdentity(); err != nil {
		return err
	}
	var end layout.Head
	for {
		next, err := s.next(end)
		if err != nil {
			return err
		}
		if next == end {
			break
		}
		end = next
	}
	if err := s.writeSnapshot(end.Seq); err != nil {
		return err
	}
	return s.line(lineEnd, scavenged{LostAtLeast: s.lostAfter(end.Seq)})
}

// lostAfter counts up to the highest event anywhere in the file.
func (s *scavenger) lostAfter(last uint64) uint64 {
	if len(s.records) == 0 || s.records[len(s.records)-1].seq <= last {
		return 0
	}
	highest := s.records[len(s.records)-1].seq
	lost := highest - last
	for first, gaps := range s.gaps {
		if first > last && gaps[0].Last < highest {
			lost -= min(lost, gaps[0].Last-first+1)
		}
	}
	return lost
}

// next writes what follows end and returns the new end; the old one if nothing follows.
func (s *scavenger) next(end layout.Head) (layout.Head, error) {
	for _, missing := range s.gaps[end.Seq+1] {
		if s.goesOn(missing) {
			return layout.Head{Seq: missing.Last, Hash: missing.LastHash}, s.line(lineGap, missing)
		}
	}
	record, next, err := s.find(end)
	if errors.Is(err, journal.ErrDamaged) {
		return end, nil
	}
	if err != nil {
		return end, err
	}
	return next, s.raw(lineRecord, record)
}

// goesOn reports whether an event follows the gap; nothing may follow a gap that was later joined with another one.
func (s *scavenger) goesOn(missing layout.Gap) bool {
	if len(s.gaps[missing.Last+1]) > 0 {
		return true
	}
	_, _, err := s.find(layout.Head{Seq: missing.Last, Hash: missing.LastHash})
	return err == nil
}

// find returns the record that follows end.
func (s *scavenger) find(end layout.Head) ([]byte, layout.Head, error) {
	seq := end.Seq + 1
	i, _ := slices.BinarySearchFunc(s.records, seq, func(p place, seq uint64) int { return cmp.Compare(p.seq, seq) })
	for ; i < len(s.records) && s.records[i].seq == seq; i++ {
		record := make([]byte, s.records[i].length)
		if _, err := s.ReadAt(record, s.records[i].offset); err != nil {
			return nil, end, err
		}
		if hash, err := journal.CheckRecord(end.Hash, record); err == nil && states(record, seq) {
			return record, layout.Head{Seq: seq, Hash: hash}, nil
		}
	}
	return nil, end, damaged("no record follows event %d", end.Seq)
}

// writeIdentity prefers an identity with a cluster.
func (s *scavenger) writeIdentity() error {
	if len(s.identities) == 0 {
		return nil
	}
	best := s.identities[0]
	for _, id := range s.identities {
		if id.ClusterUID != "" {
			best = id
		}
	}
	return s.line(lineIdentity, best)
}

// writeSnapshot writes the newest one that has no lost events.
func (s *scavenger) writeSnapshot(last uint64) error {
	var best *journal.Snapshot
	for i, snapshot := range s.snapshots {
		if snapshot.Seq <= last && (best == nil || snapshot.Seq >= best.Seq) {
			best = &s.snapshots[i]
		}
	}
	if best == nil {
		return nil
	}
	return s.line(lineSnapshot, best)
}

func (s *scavenger) line(letter byte, content any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return s.raw(letter, encoded)
}

func (s *scavenger) raw(letter byte, content []byte) error {
	_, err := fmt.Fprintf(s.out, "%c%s\n", letter, content)
	return err
}
