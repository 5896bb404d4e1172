package rescue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// The constants of bbolt's file format. The code below reads this format with pread, and checks all bounds. bbolt
// itself maps the file into memory and checks little, so a damaged page can make it panic, fault or loop forever.
const (
	boltMagic     = 0xED0CDAED
	boltVersion   = 2
	pageHeader    = 16
	elementHeader = 16
	metaSize      = 64
	bucketHeader  = 16

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10
	bucketLeaf   = 0x01

	maxDepth = 64

	minPageSize = 512
	maxPageSize = 1 << 20
)

var order = binary.LittleEndian

// pages reads the pages of a bbolt file.
type pages struct {
	*os.File
	size     int64
	pageSize int64
	meta     boltMeta
	buffers  [maxDepth][]byte
}

// boltMeta is the content of a meta page of bbolt.
type boltMeta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	// end is the first page number after those in use.
	end uint64
	tx  uint64
}

func damaged(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, journal.ErrDamaged)...)
}

// openPages opens a file and reads both meta pages. Both must be intact and from consecutive transactions, as bbolt
// always writes them. bbolt itself accepts a file with one damaged meta page, and could silently ignore the last
// transaction.
func openPages(path string) (*pages, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	p := &pages{File: file}
	if err := p.readMetas(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

func (p *pages) readMetas() error {
	info, err := p.Stat()
	if err != nil {
		return err
	}
	p.size = info.Size()
	first, err := p.readMeta(0)
	if err != nil {
		return err
	}
	p.pageSize = int64(first.pageSize)
	second, err := p.readMeta(p.pageSize)
	if err != nil {
		return err
	}
	older, newer := first, second
	if first.tx > second.tx {
		older, newer = second, first
	}
	if older.tx+1 != newer.tx || older.pageSize != newer.pageSize {
		return damaged("the meta pages have transactions %d and %d", first.tx, second.tx)
	}
	p.meta = newer
	if need := int64(newer.end) * p.pageSize; p.size < need {
		return damaged("the file has %d bytes, its content needs %d", p.size, need)
	}
	return nil
}

func (p *pages) readMeta(at int64) (boltMeta, error) {
	b := make([]byte, pageHeader+metaSize)
	if _, err := p.ReadAt(b, at); err != nil {
		if errors.Is(err, io.EOF) {
			return boltMeta{}, damaged("the file of %d bytes ends before the meta page at %d", p.size, at)
		}
		return boltMeta{}, err
	}
	b = b[pageHeader:]
	checksum := fnv.New64a()
	checksum.Write(b[:metaSize-8])
	meta := boltMeta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		end: order.Uint64(b[40:]), tx: order.Uint64(b[48:]),
	}
	size := meta.pageSize
	if order.Uint32(b) != boltMagic || order.Uint32(b[4:]) != boltVersion || checksum.Sum64() != order.Uint64(b[56:]) ||
		size < minPageSize || size > maxPageSize || size&(size-1) != 0 || meta.end > 1<<40 {
		return boltMeta{}, damaged("the meta page at %d is invalid", at)
	}
	return meta, nil
}

// page is one page, including its overflow pages.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	bytes    []byte
}

// read returns the page with this number. The next read with the same depth overwrites its bytes.
func (p *pages) read(id uint64, depth int) (page, error) {
	if depth >= maxDepth {
		return page{}, damaged("page %d is too deep", id)
	}
	if id < 2 || id >= p.meta.end {
		return page{}, damaged("page %d is outside the file's %d pages", id, p.meta.end)
	}
	header, err := p.fill(id, 1, depth)
	if err != nil {
		return page{}, err
	}
	read := page{
		id: order.Uint64(header), flags: order.Uint16(header[8:]), count: int(order.Uint16(header[10:])),
		overflow: uint64(order.Uint32(header[12:])), bytes: header,
	}
	if read.id != id {
		return page{}, damaged("page %d has the number of page %d", id, read.id)
	}
	if id+read.overflow >= p.meta.end {
		return page{}, damaged("page %d has an overflow beyond the file's %d pages", id, p.meta.end)
	}
	if read.overflow > 0 {
		read.bytes, err = p.fill(id, 1+read.overflow, depth)
	}
	return read, err
}

func (p *pages) fill(id, count uint64, depth int) ([]byte, error) {
	length := int64(count) * p.pageSize
	if int64(len(p.buffers[depth])) < length {
		p.buffers[depth] = make([]byte, length)
	}
	buffer := p.buffers[depth][:length]
	if _, err := p.ReadAt(buffer, int64(id)*p.pageSize); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, damaged("the file ends within page %d", id)
		}
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return buffer, nil
}

// element is an item of a leaf page (key, value) or of a branch page (key, child).
type element struct {
	flags      uint32
	key, value []byte
	// at is the offset of the value in its page.
	at    int64
	child uint64
}

// elementOf returns item i of a page. b is the whole page, and leaf says whether it is a leaf page.
func elementOf(b []byte, leaf bool, i int) (element, error) {
	at := uint64(pageHeader + i*elementHeader)
	if at+elementHeader > uint64(len(b)) {
		return element{}, damaged("item %d is outside its page", i)
	}
	header := b[at:]
	if !leaf {
		from := at + uint64(order.Uint32(header))
		to := from + uint64(order.Uint32(header[4:]))
		if to > uint64(len(b)) {
			return element{}, damaged("key %d is outside its page", i)
		}
		return element{key: b[from:to:to], child: order.Uint64(header[8:])}, nil
	}
	from := at + uint64(order.Uint32(header[4:]))
	middle := from + uint64(order.Uint32(header[8:]))
	to := middle + uint64(order.Uint32(header[12:]))
	if to > uint64(len(b)) {
		return element{}, damaged("value %d is outside its page", i)
	}
	return element{flags: order.Uint32(header), key: b[from:middle:middle], value: b[middle:to:to], at: int64(middle)}, nil
}

// freeIn returns the numbers of the free pages, from the freelist page.
func freeIn(list page) ([]uint64, error) {
	if list.flags != freelistPage {
		return nil, damaged("page %d should be the freelist and has flags %x", list.id, list.flags)
	}
	ids, count := list.bytes[pageHeader:], uint64(list.count)
	if list.count == 0xFFFF {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return nil, damaged("the freelist's %d numbers do not fit its page", count)
	}
	free := make([]uint64, count)
	for i := range free {
		free[i] = order.Uint64(ids[8*i:])
	}
	return free, nil
}
