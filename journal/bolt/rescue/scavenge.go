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

// A scavenger writes lines. Each line is one of these letters and a JSON value.
const (
	lineIdentity = 'I' // layout.Identity
	lineGap      = 'G' // layout.Gap
	lineRecord   = 'R' // a stored record
	lineSnapshot = 'S' // journal.Snapshot
	lineEnd      = 'E' // scavenged
)

// scavenged is the content of the last line. A scavenger that did not finish does not write it.
type scavenged struct {
	// LostAtLeast is how many events certainly followed the last record that the scavenger wrote.
	LostAtLeast uint64 `json:"lost_at_least"`
}

// scavenge writes all events of a damaged file before the first lost or changed one. It reads every page, also pages
// that bbolt's tree does not reach, because the hash of a record proves that the record belongs to the journal.
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

// scavenger collects everything of a journal that it finds in a damaged file.
type scavenger struct {
	*pages
	out        *bufio.Writer
	identities []layout.Identity
	gaps       map[uint64][]layout.Gap // by the number of their first event
	records    []place
	snapshots  []journal.Snapshot
}

// place is the position of a record in the file. A file can have several copies of a record.
type place struct {
	seq    uint64
	offset int64
	length int
}

// size sets the sizes of the file and of its pages. It needs no intact meta page.
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
	// Several gaps with the same first event are versions of one gap. The longest one is the newest, and is tried
	// first.
	for _, gaps := range s.gaps {
		slices.SortFunc(gaps, func(a, b layout.Gap) int { return cmp.Compare(b.Last, a.Last) })
	}
	slices.SortFunc(s.records, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

// collectPage collects the content of a page. It skips a page that is damaged or not a leaf page.
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

// page collects the content of a leaf page. offset is the position of the page in the file.
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

// numbered collects an element that is a record or a gap, and reports whether it is one.
func (s *scavenger) numbered(e element, offset int64) bool {
	seq, err := layout.Number(e.key)
	if err != nil {
		return false
	}
	if hasSeq(e.value, seq) {
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

// write writes the collected records in the order of the chain of hashes, until a record is missing.
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

// lostAfter returns how many events after the event last are lost, up to the highest event number in the file. Events
// that retention moved out do not count.
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

// next writes the record or gap that follows end, and returns the new end. If nothing follows, it returns the old end.
func (s *scavenger) next(end layout.Head) (layout.Head, error) {
	for _, missing := range s.gaps[end.Seq+1] {
		if s.continuesAfter(missing) {
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

// continuesAfter reports whether the file has the event after the gap, or another gap there. If not, the gap is an old
// version, which retention has extended since.
func (s *scavenger) continuesAfter(missing layout.Gap) bool {
	if len(s.gaps[missing.Last+1]) > 0 {
		return true
	}
	_, _, err := s.find(layout.Head{Seq: missing.Last, Hash: missing.LastHash})
	return err == nil
}

// find returns the record that follows end, and the end after it. It tries all copies of the record.
func (s *scavenger) find(end layout.Head) ([]byte, layout.Head, error) {
	seq := end.Seq + 1
	i, _ := slices.BinarySearchFunc(s.records, seq, func(p place, seq uint64) int { return cmp.Compare(p.seq, seq) })
	for ; i < len(s.records) && s.records[i].seq == seq; i++ {
		record := make([]byte, s.records[i].length)
		if _, err := s.ReadAt(record, s.records[i].offset); err != nil {
			return nil, end, err
		}
		if hash, err := journal.CheckRecord(end.Hash, record); err == nil && hasSeq(record, seq) {
			return record, layout.Head{Seq: seq, Hash: hash}, nil
		}
	}
	return nil, end, damaged("no record follows event %d", end.Seq)
}

// writeIdentity writes the journal's identity. It prefers an identity with the UID of a cluster, since that is newer.
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

// writeSnapshot writes the newest snapshot that includes no lost events.
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
