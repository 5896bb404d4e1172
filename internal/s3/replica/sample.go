package replica

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

const (
	// candidates is how many versions are kept to choose from.
	candidates = 8192
	// stretch is how much of one version is read at most.
	stretch = 8 << 20
	// readers is how many are read at the same time.
	readers = 16
	// described is how many of them are asked for their attributes too, which are the
	// same in a listing but for one.
	described = 500
)

// sample is a random choice of versions, each as likely as any other.
type sample struct {
	bytes   int64
	offered int
	kept    []candidate
}

type candidate struct {
	bucket string
	s3.Version
	offset, length int64
	describe       bool
}

func newSample(bytes int64) *sample { return &sample{bytes: bytes} }

// offer takes a version into account.
func (s *sample) offer(bucket string, v s3.Version) {
	if v.Size == 0 || s.bytes == 0 || v.Attributes != nil && v.Attributes.Encryption == s3.SSEC {
		return
	}
	s.offered++
	one := candidate{bucket: bucket, Version: v}
	if len(s.kept) < candidates {
		s.kept = append(s.kept, one)
	} else if at := rand.IntN(s.offered); at < candidates {
		s.kept[at] = one
	}
}

// choose returns as many of the candidates as the bytes allow, with a random
// stretch of each.
func (s *sample) choose() []candidate {
	rand.Shuffle(len(s.kept), func(i, j int) { s.kept[i], s.kept[j] = s.kept[j], s.kept[i] })
	left := s.bytes
	var chosen []candidate
	for _, one := range s.kept {
		one.length = min(one.Size, stretch, left)
		if one.length == 0 {
			break
		}
		one.offset = rand.Int64N(one.Size - one.length + 1)
		one.describe = len(chosen) < described
		left -= one.length
		chosen = append(chosen, one)
	}
	return chosen
}

// check reads the chosen versions on both sides.
func (s *sample) check(ctx context.Context, source, target s3.Source, report *Report) error {
	var mu sync.Mutex
	var errs []error
	parallel.Each(readers, s.choose(), func(one candidate) {
		same, err := one.same(ctx, source, target)
		if err == nil && same && one.describe {
			same, err = one.described(ctx, source, target)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, s3.ErrGone): // from the source, since it was compared
		case err != nil:
			errs = append(errs, err)
		default:
			report.Sampled++
			report.SampledBytes += one.length
			if !same {
				report.add(Difference{one.bucket, one.Key, one.ID, []Aspect{Content}})
			}
		}
	})
	return errors.Join(errs...)
}

// same reports whether the content is the same on both sides.
func (one candidate) same(ctx context.Context, source, target s3.Source) (bool, error) {
	theirs, err := one.sum(ctx, source)
	if err != nil {
		return false, err
	}
	ours, err := one.sum(ctx, target)
	if errors.Is(err, s3.ErrGone) {
		return false, nil
	}
	return theirs == ours, err
}

// described reports whether a reader is told the same on both sides, also what no
// listing tells.
func (one candidate) described(ctx context.Context, source, target s3.Source) (bool, error) {
	theirs, err := source.Describe(ctx, one.bucket, one.Version)
	if err != nil {
		return false, err
	}
	ours, err := target.Describe(ctx, one.bucket, one.Version)
	return err == nil && maps.Equal(theirs.Headers, ours.Headers) && theirs.Expires == ours.Expires, err
}

func (one candidate) sum(ctx context.Context, store s3.Source) (sum [sha256.Size]byte, err error) {
	content, err := store.Open(ctx, one.bucket, one.Version, one.offset, one.length)
	if err != nil {
		return sum, err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
