package minio

import (
	"hash/maphash"

	"github.com/replicatedhq/ekco/internal/s3"
)

// itemSet is the set of scanned items, as a Bloom filter with constant memory. It always reports a scanned item as
// scanned. It also reports some other items as scanned: one in 100,000 after a million scanned items, and one in 200
// after three million. That is good enough, because an incomplete scan misses many objects.
type itemSet struct {
	pages [seenPages]*seenPage
	seed  maphash.Seed
}

// seenPage is a part of the filter. It is allocated with its first bit, since most stores have few objects.
type seenPage [64]uint64

const (
	// seenBits is the size of the filter: 4 MiB. seenHashes is the number of bits for each item.
	seenBits   = 1 << 25
	seenHashes = 7
	pageBits   = 64 * 64
	seenPages  = seenBits / pageBits
)

func newSeen() *itemSet { return &itemSet{seed: maphash.MakeSeed()} }

func (s *itemSet) add(kind s3.HealKind, bucket, key, version string) {
	s.eachBit(kind, bucket, key, version, func(at uint64) bool {
		page := &s.pages[at/pageBits]
		if *page == nil {
			*page = new(seenPage)
		}
		(*page)[at%pageBits/64] |= 1 << (at % 64)
		return true
	})
}

func (s *itemSet) has(kind s3.HealKind, bucket, key, version string) bool {
	return s.eachBit(kind, bucket, key, version, func(at uint64) bool {
		page := s.pages[at/pageBits]
		return page != nil && page[at%pageBits/64]&(1<<(at%64)) != 0
	})
}

// eachBit calls visit for each bit of an item until visit returns false. It reports whether it visited all bits.
func (s *itemSet) eachBit(kind s3.HealKind, bucket, key, version string, visit func(at uint64) bool) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, part := range []string{string(kind), bucket, version, key} {
		h.WriteString(part)
		h.WriteByte(0)
	}
	sum := h.Sum64()
	for i := range uint64(seenHashes) {
		if !visit((sum + i*(sum>>32|1)) % seenBits) {
			return false
		}
	}
	return true
}
