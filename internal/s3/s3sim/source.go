package s3sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

var _ s3.Target = (*Store)(nil)

// Buckets implements [s3.Source].
func (s *Store) Buckets(ctx context.Context) ([]string, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.buckets)), nil
}

// Versions implements [s3.Source]. It lists the keys that exist at its start, and of each key the versions that exist
// when it reaches the key.
func (s *Store) Versions(ctx context.Context, name, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		keys, err := s.keys(ctx, name)
		if err != nil {
			yield(s3.Version{}, err)
			return
		}
		for _, key := range keys {
			if key <= after {
				continue
			}
			for _, v := range s.list(name, key) {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// VersionsOf implements [s3.Source].
func (s *Store) VersionsOf(ctx context.Context, name, key string) ([]s3.Version, error) {
	if _, err := s.keys(ctx, name); err != nil {
		return nil, err
	}
	return s.list(name, key), nil
}

func (s *Store) keys(ctx context.Context, name string) ([]string, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(b.objects)), nil
}

// list returns the versions of an object as they are listed.
func (s *Store) list(name, key string) []s3.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil {
		return nil
	}
	var versions []s3.Version
	for _, one := range b.objects[key] {
		v := one.Version
		v.Modified = v.Modified.Truncate(time.Millisecond)
		if v.Attributes != nil {
			attributes := *v.Attributes
			attributes.Expires = ""
			v.Attributes = &attributes
		}
		versions = append(versions, v)
	}
	return versions
}

// Describe implements [s3.Source].
func (s *Store) Describe(ctx context.Context, name string, v s3.Version) (s3.Attributes, error) {
	if err := s.reach(ctx); err != nil {
		return s3.Attributes{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, err := s.version(name, v)
	if err == nil && one.DeleteMarker {
		err = fmt.Errorf("object %q: %w", v.Key, s3.ErrGone)
	}
	if err != nil {
		return s3.Attributes{}, err
	}
	return *one.Attributes, nil
}

// Open implements [s3.Source].
func (s *Store) Open(ctx context.Context, name string, v s3.Version, offset, length int64) (s3.Content, error) {
	if err := s.reach(ctx); err != nil {
		return s3.Content{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, err := s.version(name, v)
	if err == nil && (one.DeleteMarker || one.ETag != v.ETag || offset+length > one.Size) {
		err = fmt.Errorf("object %q: %w", v.Key, s3.ErrGone)
	}
	if err != nil {
		return s3.Content{}, err
	}
	content := io.NopCloser(bytes.NewReader(one.content[offset : offset+length]))
	return s3.Content{ReadCloser: content, Expires: one.Attributes.Expires, Headers: maps.Clone(one.Attributes.Headers)}, nil
}

// Settings implements [s3.Source].
func (s *Store) Settings(ctx context.Context, name string) (s3.Settings, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return maps.Clone(b.settings), nil
}
