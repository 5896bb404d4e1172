package minio

import (
	"hash/maphash"

	"github.com/replicatedhq/ekco/internal/s3"
)

// seen is the set of scanned items in constant memory: a Bloom filter. An item that it does not
// have was not scanned. It takes an item that was not scanned for a scanned one about once in
// 100,000 times with a million items, and once in 200 with three million. That is enough: a single
// missed item shows that a list was cut short.
type seen struct {
	bits []uint64
	seed maphash.Seed
}

const (
	// seenBits is the size of the filter, 4 MiB. seenHashes is how many bits stand for one item.
	seenBits   = 1 << 25
	seenHashes = 7
)

func newSeen() *seen { return &seen{make([]uint64, seenBits/64), maphash.MakeSeed()} }

func (s *seen) add(kind s3.HealKind, bucket, key, version string) {
	s.each(kind, bucket, key, version, func(at uint64) bool {
		s.bits[at/64] |= 1 << (at % 64)
		return true
	})
}

func (s *seen) has(kind s3.HealKind, bucket, key, version string) bool {
	return s.each(kind, bucket, key, version, func(at uint64) bool { return s.bits[at/64]&(1<<(at%64)) != 0 })
}

// each visits the bits of an item until visit returns false, and reports whether it visited all.
func (s *seen) each(kind s3.HealKind, bucket, key, version string, visit func(at uint64) bool) bool {
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
