package rescue

import (
	"bytes"
	"fmt"
)

// tree reads the pages of bbolt's tree, and notes which pages it has read.
type tree struct {
	*pages
	seen []bool
}

func newTree(p *pages) *tree { return &tree{pages: p, seen: make([]bool, p.meta.end)} }

// claim notes that a page is in use. It returns an error if the page was already in use, because each page has only one
// use.
func (t *tree) claim(read page) error {
	for id := read.id; id <= read.id+read.overflow; id++ {
		if t.seen[id] {
			return damaged("page %d is used twice", id)
		}
		t.seen[id] = true
	}
	return nil
}

// buckets returns a copy of the value of each top-level bucket, by name.
func (t *tree) buckets() (map[string][]byte, error) {
	found := make(map[string][]byte)
	err := t.walk(t.meta.root, 0, nil, nil, func(e element) error {
		if e.flags != bucketLeaf || len(e.value) < bucketHeader {
			return damaged("%q is not a bucket", e.key)
		}
		found[string(e.key)] = bytes.Clone(e.value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list of buckets: %w", err)
	}
	return found, nil
}

// each calls visit with each item of a bucket, in order. visit must not keep key and value.
func (t *tree) each(name string, bucket []byte, visit func(key, value []byte) error) error {
	plain := func(e element) error {
		if e.flags != 0 {
			return damaged("item %x has flags %x", e.key, e.flags)
		}
		return visit(e.key, e.value)
	}
	var err error
	if root := order.Uint64(bucket); root != 0 {
		err = t.walk(root, 0, nil, nil, plain)
	} else {
		err = t.inline(bucket[bucketHeader:], plain)
	}
	if err != nil {
		return fmt.Errorf("bucket %s: %w", name, err)
	}
	return nil
}

// inline visits the items of a bucket that is so small that bbolt stores it in its parent's page.
func (t *tree) inline(b []byte, visit func(element) error) error {
	if len(b) < pageHeader {
		return damaged("an inline bucket has %d bytes", len(b))
	}
	inlined := page{flags: order.Uint16(b[8:]), count: int(order.Uint16(b[10:])), bytes: b}
	if inlined.flags != leafPage || order.Uint64(b) != 0 || order.Uint32(b[12:]) != 0 {
		return damaged("an inline bucket's header is invalid")
	}
	return t.leaf(inlined, nil, nil, visit)
}

// walk visits the items of the tree below a page. It checks that the keys are at least low and below high, if these are
// not nil, because bbolt relies on these limits when it searches a key.
func (t *tree) walk(id uint64, depth int, low, high []byte, visit func(element) error) error {
	read, err := t.read(id, depth)
	if err != nil {
		return err
	}
	if err := t.claim(read); err != nil {
		return err
	}
	switch read.flags {
	case leafPage:
		err = t.leaf(read, low, high, visit)
	case branchPage:
		err = t.branch(read, depth, low, high, visit)
	default:
		err = damaged("flags are %x", read.flags)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (t *tree) leaf(read page, low, high []byte, visit func(element) error) error {
	var previous []byte
	for i := range read.count {
		e, err := elementOf(read.bytes, true, i)
		if err != nil {
			return err
		}
		if err := inOrder(e.key, previous, low, high); err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
		previous = e.key
	}
	return nil
}

func (t *tree) branch(read page, depth int, low, high []byte, visit func(element) error) error {
	if read.count == 0 {
		return damaged("a branch has no children")
	}
	var previous []byte
	for i := range read.count {
		e, err := elementOf(read.bytes, false, i)
		if err != nil {
			return err
		}
		if err := inOrder(e.key, previous, low, high); err != nil {
			return err
		}
		bound := high
		if i+1 < read.count {
			next, err := elementOf(read.bytes, false, i+1)
			if err != nil {
				return err
			}
			bound = next.key
		}
		if err := t.walk(e.child, depth+1, e.key, bound, visit); err != nil {
			return err
		}
		previous = e.key
	}
	return nil
}

func inOrder(key, previous, low, high []byte) error {
	switch {
	case previous != nil && bytes.Compare(previous, key) >= 0:
		return damaged("key %x follows %x", key, previous)
	case low != nil && bytes.Compare(key, low) < 0:
		return damaged("key %x is before its branch's %x", key, low)
	case high != nil && bytes.Compare(key, high) >= 0:
		return damaged("key %x is after its branch's %x", key, high)
	}
	return nil
}

// checkFree checks that each page is either in use or in the freelist. bbolt would overwrite a page that is both.
func (t *tree) checkFree() error {
	list, err := t.read(t.meta.freelist, 0)
	if err == nil {
		err = t.claim(list)
	}
	if err != nil {
		return fmt.Errorf("freelist: %w", err)
	}
	free, err := freeIn(list)
	if err != nil {
		return err
	}
	for _, id := range free {
		if id < 2 || id >= t.meta.end || t.seen[id] {
			return damaged("page %d cannot be free", id)
		}
		t.seen[id] = true
	}
	for id := uint64(2); id < t.meta.end; id++ {
		if !t.seen[id] {
			return damaged("page %d is neither in use nor free", id)
		}
	}
	return nil
}
