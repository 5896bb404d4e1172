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
	// maxSampledBytes is the maximum number of bytes that are read of one version.
	maxSampledBytes = 8 << 20
	// readersAtOnce is the number of versions that are read at the same time.
	readersAtOnce = 16
)

// sample is a random sample of versions; each has the same probability.
type sample struct {
	bytes   int64
	offered int
	kept    []candidate
}

type candidate struct {
	bucket string
	s3.Version
	offset, length int64
}

func newSample(bytes int64) *sample { return &sample{bytes: bytes} }

// offer adds a version to the sample at random: reservoir sampling gives each version the same probability.
func (s *sample) offer(bucket string, v s3.Version) {
	if v.Size == 0 || s.bytes == 0 || v.Attributes != nil && v.Attributes.Encryption == s3.SSEC {
		return
	}
	s.offered++
	one := candidate{bucket: bucket, Version: v}
	if len(s.kept) < MaxSampled {
		s.kept = append(s.kept, one)
	} else if at := rand.IntN(s.offered); at < MaxSampled {
		s.kept[at] = one
	}
}

// pick returns sampled versions, each with a random range of its content, until the ranges reach the byte limit.
func (s *sample) pick() []candidate {
	rand.Shuffle(len(s.kept), func(i, j int) { s.kept[i], s.kept[j] = s.kept[j], s.kept[i] })
	left := s.bytes
	var chosen []candidate
	for _, one := range s.kept {
		one.length = min(one.Size, maxSampledBytes, left)
		if one.length == 0 {
			break
		}
		one.offset = rand.Int64N(one.Size - one.length + 1)
		left -= one.length
		chosen = append(chosen, one)
	}
	return chosen
}

// check reads the picked ranges on both sides and reports differences.
func (s *sample) check(ctx context.Context, source, target s3.Source, report *Report) error {
	var mu sync.Mutex
	var errs []error
	parallel.Each(readersAtOnce, s.pick(), func(one candidate) {
		aspects, err := one.compareContent(ctx, source, target)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, s3.ErrGone), errors.Is(err, s3.ErrUnreadable): // the version was removed after it was compared, or cannot be read
		case err != nil:
			errs = append(errs, err)
		default:
			report.Sampled++
			report.SampledBytes += one.length
			if len(aspects) > 0 {
				report.add(differenceOf(one.bucket, one.Version, aspects))
			}
		}
	})
	return errors.Join(errs...)
}

// compareContent compares the content and the headers that both sides return to clients. Listings do not have all
// headers.
func (one candidate) compareContent(ctx context.Context, source, target s3.Source) ([]Aspect, error) {
	if err := loadAttributes(ctx, source, one.bucket, &one.Version); err != nil {
		return nil, err
	}
	theirs, err := one.read(ctx, source)
	if err != nil {
		return nil, err
	}
	ours, err := one.read(ctx, target)
	if errors.Is(err, s3.ErrGone) {
		return []Aspect{Content}, nil
	}
	if err != nil {
		return nil, err
	}
	var differ []Aspect
	if theirs.sum != ours.sum {
		differ = append(differ, Content)
	}
	if theirs.expires != ours.expires || !maps.Equal(theirs.headers, ours.headers) {
		differ = append(differ, Metadata)
	}
	return differ, nil
}

// reading is the content hash and the headers that a client gets for a version.
type reading struct {
	sum     [sha256.Size]byte
	headers map[string]string
	expires string
}

func (one candidate) read(ctx context.Context, store s3.Source) (got reading, err error) {
	content, err := store.Open(ctx, one.bucket, one.Version, one.offset, one.length)
	if err != nil {
		return got, err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return got, err
	}
	return reading{[sha256.Size]byte(hash.Sum(nil)), content.Headers, content.Expires}, nil
}
