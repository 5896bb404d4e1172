package s3sim

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what an ETag is
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/sim"
)

// do changes the store, between the hooks.
func (s *Store) do(ctx context.Context, effect string, f func() (changed bool, err error)) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	return sim.Do(&s.Controls, effect, effect, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return f()
	})
}

// CreateBucket implements [s3.Target].
func (s *Store) CreateBucket(ctx context.Context, name string, locked bool) error {
	return s.do(ctx, "create "+name, func() (bool, error) {
		if s.buckets[name] != nil {
			return false, nil
		}
		s.buckets[name] = &bucket{settings: make(s3.Settings), objects: make(map[string][]stored)}
		if locked {
			s.buckets[name].settings[s3.Versioning] = s3.VersioningEnabled
		}
		return true, nil
	})
}

// RemoveBucket implements [s3.Target].
func (s *Store) RemoveBucket(ctx context.Context, name string) error {
	return s.do(ctx, "drop "+name, func() (bool, error) {
		b := s.buckets[name]
		if b != nil && len(b.objects) > 0 {
			return false, fmt.Errorf("bucket %q is not empty", name)
		}
		delete(s.buckets, name)
		return b != nil, nil
	})
}

// Set implements [s3.Target].
func (s *Store) Set(ctx context.Context, name string, setting s3.SettingName, value string) error {
	return s.do(ctx, "set "+name, func() (bool, error) {
		b, err := s.find(name)
		if err != nil {
			return false, err
		}
		changed := b.settings[setting] != value
		if b.settings[setting] = value; value == "" {
			delete(b.settings, setting)
		}
		return changed, nil
	})
}

// Put implements [s3.Target].
func (s *Store) Put(ctx context.Context, name string, v s3.Version, old *s3.Version, content io.Reader, unchecked bool) error {
	all, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return s.do(ctx, "put "+name+"/"+v.Key, func() (bool, error) {
		sum := md5.Sum(all) //nolint:gosec // what an ETag is
		if int64(len(all)) != v.Size || !unchecked && len(v.ETag) == 32 && v.ETag != hex.EncodeToString(sum[:]) {
			return false, s3.ErrDigest
		}
		return s.put(name, stored{v, all}, old, unchecked)
	})
}

// put stores a version. It refuses if given is set and the version with that id already has the same ETag, or if it
// would replace a null version other than old. It expects mu to be held.
func (s *Store) put(name string, one stored, old *s3.Version, given bool) (bool, error) {
	there, err := s.version(name, one.Version)
	exists := err == nil
	if given && exists && there.ETag == one.ETag || one.ID == s3.NullVersion && (exists != (old != nil) || exists && there.ETag != old.ETag) {
		return false, s3.ErrExists
	}
	return s.keep(name, one)
}

// keep stores a version. It expects mu to be held.
func (s *Store) keep(name string, one stored) (bool, error) {
	b, err := s.find(name)
	if err != nil {
		return false, err
	}
	if one.ID != s3.NullVersion && b.settings[s3.Versioning] != s3.VersioningEnabled {
		return false, fmt.Errorf("bucket %q does not keep versions", name)
	}
	b.insert(one)
	return true, nil
}

// Begin implements [s3.Target].
func (s *Store) Begin(ctx context.Context, name string, v s3.Version) (upload string, err error) {
	err = s.do(ctx, "begin "+name+"/"+v.Key, func() (bool, error) {
		s.ids++
		upload = fmt.Sprint("upload-", s.ids)
		s.uploads[upload] = make(map[int][]byte)
		return true, nil
	})
	return upload, err
}

// Uploads returns how many uploads are neither complete nor aborted.
func (s *Store) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

var errNoUpload = errors.New("there is no such upload")

// PutPart implements [s3.Target].
func (s *Store) PutPart(ctx context.Context, name string, v s3.Version, upload string, number int, content io.Reader, size int64) (s3.Part, error) {
	all, err := io.ReadAll(content)
	if err != nil {
		return s3.Part{}, err
	}
	err = s.do(ctx, "part "+name+"/"+v.Key, func() (bool, error) {
		if s.uploads[upload] == nil || int64(len(all)) != size {
			return false, errNoUpload
		}
		s.uploads[upload][number] = all
		return true, nil
	})
	return s3.Part{Number: number}, err
}

// Complete implements [s3.Target].
func (s *Store) Complete(ctx context.Context, name string, v s3.Version, upload string, parts []s3.Part) error {
	return s.do(ctx, "complete "+name+"/"+v.Key, func() (bool, error) {
		if s.uploads[upload] == nil {
			return false, errNoUpload
		}
		var content bytes.Buffer
		for _, part := range parts {
			content.Write(s.uploads[upload][part.Number])
		}
		delete(s.uploads, upload)
		if there, err := s.version(name, v); err == nil && there.ETag == v.ETag {
			return false, s3.ErrExists
		}
		return s.keep(name, stored{v, content.Bytes()})
	})
}

// Abort implements [s3.Target].
func (s *Store) Abort(ctx context.Context, name string, v s3.Version, upload string) error {
	return s.do(ctx, "abort "+name+"/"+v.Key, func() (bool, error) {
		delete(s.uploads, upload)
		return true, nil
	})
}

// PutMarker implements [s3.Target].
func (s *Store) PutMarker(ctx context.Context, name string, v s3.Version) error {
	return s.do(ctx, "mark "+name+"/"+v.Key, func() (bool, error) { return s.keep(name, stored{Version: v}) })
}

// Annotate implements [s3.Target].
func (s *Store) Annotate(ctx context.Context, name string, v s3.Version, _ s3.Attributes) error {
	return s.do(ctx, "annotate "+name+"/"+v.Key, func() (bool, error) {
		one, err := s.version(name, v)
		if err != nil {
			return false, err
		}
		attributes := *one.Attributes
		attributes.Tags, attributes.Retention, attributes.LegalHold = v.Attributes.Tags, v.Attributes.Retention, v.Attributes.LegalHold
		one.Attributes = &attributes
		return true, nil
	})
}

// Remove implements [s3.Target].
func (s *Store) Remove(ctx context.Context, name string, v s3.Version) error {
	return s.do(ctx, "remove "+name+"/"+v.Key, func() (bool, error) {
		b, err := s.find(name)
		if err != nil {
			return false, err
		}
		if one, err := s.version(name, v); err == nil && one.Attributes != nil && one.Attributes.LegalHold {
			return false, s3.ErrLocked
		}
		return b.remove(v.Key, v.ID), nil
	})
}

// SetAside copies a version in another bucket.
func (s *Store) SetAside(ctx context.Context, name string, v s3.Version, to string) error {
	return s.do(ctx, "set-aside "+name+"/"+v.Key, func() (bool, error) {
		if s.buckets[to] == nil {
			s.buckets[to] = &bucket{settings: s3.Settings{s3.BucketTags: "<Key>" + to + "</Key>"}, objects: make(map[string][]stored)}
		}
		if !s3.IsAside(s.buckets[to].settings) {
			return false, s3.ErrTaken
		}
		one, err := s.version(name, v)
		if err != nil || v.DeleteMarker {
			return false, err
		}
		kept := *one
		kept.Key, kept.ID = s3.AsideName(name, v), s3.NullVersion
		if len(kept.Key) > s3.MaxKey {
			return false, refusal("KeyTooLongError")
		}
		s.buckets[to].insert(kept)
		return true, nil
	})
}

// refusal is the error of a request that the server would refuse again.
type refusal string

// Error and Reason implement [s3.Refusal].
func (r refusal) Error() string  { return string(r) }
func (r refusal) Reason() string { return string(r) }
