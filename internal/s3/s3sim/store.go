package s3sim

import (
	"context"
	"crypto/md5" //nolint:gosec // what an ETag is
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/sim"
)

// ErrUnavailable is the error of a store that is down.
var ErrUnavailable = errors.New("the store does not answer")

// Store is a simulated store. Create it with [New]. Its methods are safe for concurrent use. Its
// effects are named VERB BUCKET or VERB BUCKET/KEY.
type Store struct {
	sim.Controls

	mu      sync.Mutex
	down    bool
	buckets map[string]*bucket
	uploads map[string]map[int][]byte
	ids     int
	// hears are the listeners for removals by clients, by number.
	hears map[int]func(s3.Removal)
	heard int
}

type bucket struct {
	settings s3.Settings
	// objects are by key, the newest version first.
	objects map[string][]stored
}

type stored struct {
	s3.Version
	content []byte
}

// New returns a store without buckets that answers at once.
func New() *Store {
	return &Store{
		Controls: sim.NewControls(ErrUnavailable), buckets: make(map[string]*bucket), uploads: make(map[string]map[int][]byte),
	}
}

// SetDown takes the store down, or brings it back with its data.
func (s *Store) SetDown(down bool) { sim.Set(&s.mu, &s.down, down) }

// AddBucket adds a bucket with settings, as an application does.
func (s *Store) AddBucket(name string, settings s3.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name] = &bucket{settings: maps.Clone(settings), objects: make(map[string][]stored)}
	if settings == nil {
		s.buckets[name].settings = make(s3.Settings)
	}
}

// DropBucket removes a bucket with all objects.
func (s *Store) DropBucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, name)
	s.reportRemoval(name, "", "")
}

// LoseBucket is DropBucket without an event: the volume lost it.
func (s *Store) LoseBucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, name)
}

// reportRemoval reports a removal by a client. It expects mu to be held.
func (s *Store) reportRemoval(bucket, key, id string) {
	for _, heard := range s.hears {
		heard(s3.Removal{Bucket: bucket, Key: key, ID: id, At: time.Now()})
	}
}

// ListenForRemovals reports what clients remove, until ctx ends.
func (s *Store) ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	if s.hears == nil {
		s.hears = make(map[int]func(s3.Removal))
	}
	s.heard++
	number := s.heard
	s.hears[number] = heard
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hears, number)
	return ctx.Err()
}

// TriggerEvent reports a removal of nothing.
func (s *Store) TriggerEvent(_ context.Context, bucket, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, heard := range s.hears {
		heard(s3.Removal{Bucket: bucket, Key: key, ID: "none", At: time.Now(), Nothing: true})
	}
	return nil
}

// Write stores an object as an application does, with that time, and returns the version.
func (s *Store) Write(name, key, content string, attributes s3.Attributes, at time.Time) s3.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := md5.Sum([]byte(content)) //nolint:gosec // what an ETag is
	v := s3.Version{
		Key: key, ID: s.id(name), Size: int64(len(content)), ETag: hex.EncodeToString(sum[:]), Modified: at.UTC(),
		Attributes: &attributes,
	}
	s.buckets[name].insert(stored{v, []byte(content)})
	return v
}

// Delete deletes an object as an application does: for good, or with a marker.
func (s *Store) Delete(name, key string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b.settings[s3.Versioning] == "" {
		delete(b.objects, key)
		s.reportRemoval(name, key, s3.NullVersion)
		return
	}
	b.insert(stored{Version: s3.Version{Key: key, ID: s.id(name), DeleteMarker: true, Modified: at.UTC()}})
}

// DeleteVersion removes a version for good.
func (s *Store) DeleteVersion(name, key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name].remove(key, id)
	s.reportRemoval(name, key, id)
}

// Lose is DeleteVersion without an event: the volume lost it.
func (s *Store) Lose(name, key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name].remove(key, id)
}

// id returns the id of the next version. It expects mu to be held.
func (s *Store) id(name string) string {
	if !strings.Contains(s.buckets[name].settings[s3.Versioning], "Enabled") {
		return s3.NullVersion
	}
	s.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.ids)
}

// insert puts a version in its place by time, and replaces a version with the same id.
func (b *bucket) insert(one stored) {
	b.remove(one.Key, one.ID)
	versions := slices.Concat(b.objects[one.Key], []stored{one})
	slices.SortStableFunc(versions, func(a, b stored) int { return b.Modified.Compare(a.Modified) })
	b.objects[one.Key] = versions
}

func (b *bucket) remove(key, id string) (removed bool) {
	left := slices.DeleteFunc(slices.Clone(b.objects[key]), func(one stored) bool { return one.ID == id })
	removed = len(left) < len(b.objects[key])
	b.objects[key] = left
	if len(left) == 0 {
		delete(b.objects, key)
	}
	return removed
}

// Dump describes everything in the store, for a comparison with another store. Times are in milliseconds, as servers
// report them.
func (s *Store) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dump strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		fmt.Fprintf(&dump, "%s %v\n", name, s.buckets[name].settings)
		for _, key := range slices.Sorted(maps.Keys(s.buckets[name].objects)) {
			for _, one := range s.buckets[name].objects[key] {
				fmt.Fprintf(&dump, "  %q %s\n", key, one)
			}
		}
	}
	return dump.String()
}

// String describes the version.
func (one stored) String() string {
	at := one.Modified.Truncate(time.Millisecond).Format(time.RFC3339Nano)
	if one.DeleteMarker {
		return fmt.Sprintf("%s %s deleted", one.ID, at)
	}
	a := one.Attributes
	return fmt.Sprintf("%s %s %s %v %v %v %v %v %q", one.ID, at, one.ETag, a.Headers, a.Expires, a.Tags, a.Retention, a.LegalHold, one.content)
}

// reach waits as long as a call takes, and returns why it fails.
func (s *Store) reach(ctx context.Context) error {
	if err := sim.Pass(ctx, &s.Controls); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return ErrUnavailable
	}
	return nil
}

// find returns a bucket. It expects mu to be held.
func (s *Store) find(name string) (*bucket, error) {
	b := s.buckets[name]
	if b == nil {
		return nil, fmt.Errorf("bucket %q: %w", name, s3.ErrGone)
	}
	return b, nil
}

// version returns a version. It expects mu to be held.
func (s *Store) version(name string, v s3.Version) (*stored, error) {
	b, err := s.find(name)
	if err != nil {
		return nil, err
	}
	for i := range b.objects[v.Key] {
		if one := &b.objects[v.Key][i]; one.ID == v.ID {
			return one, nil
		}
	}
	return nil, fmt.Errorf("object %q: %w", v.Key, s3.ErrGone)
}
