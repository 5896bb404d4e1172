package minio

import (
	"hash/maphash"

	"github.com/replicatedhq/ekco/internal/s3"
)

// seen is what was looked at, in so much memory however much that is: a Bloom filter. What is
// not in it was not looked at. What was not looked at may be taken for seen, once in a hundred
// thousand times among a million, and once in two hundred among three million; of a list that
// was cut short it takes one to notice.
type seen struct {
	bits []uint64
	seed maphash.Seed
}

const (
	// seenBits is the size of the filter, 4 MiB, seenHashes how many of them stand for one.
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

// each visits the bits of one as long as that is wanted, and reports whether that were all.
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
