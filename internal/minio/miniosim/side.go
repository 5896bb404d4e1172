package miniosim

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// Network connects one process to both stores.
type Network struct {
	*Both
	// Alive returns an error once the process is dead. If Alive is nil, the process never dies.
	Alive func() error
	// Around, if set, is called with each change. It decides whether to call do.
	Around func(what string, do func() error) error
}

var _ minio.Stores = Network{}

// Store implements [minio.Stores].
func (n Network) Store(addresses []string, with minio.Credentials) (minio.Store, error) {
	host, _, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return nil, err
	}
	one := &side{Store: n.target(), net: n, name: TargetSide, host: host, with: with}
	if len(host) > 2 && host[:3] == "10." {
		one.Store, one.name = n.source(), SourceSide
	}
	return one, nil
}

// side is a store with its network.
type side struct {
	*s3sim.Store
	net        Network
	name, host string
	with       minio.Credentials
}

// reach returns an error if the store does not answer.
func (s *side) reach() error {
	if s.net.Alive != nil {
		if err := s.net.Alive(); err != nil {
			return err
		}
	}
	up := s.net.quorum()
	if s.name == SourceSide {
		up = s.net.singleAt(s.host)
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	switch {
	case !up:
		return fmt.Errorf("%s at %s: %w", s.name, s.host, s3sim.ErrUnavailable)
	case s.net.denied[s.name] || s.with != credentials:
		return fmt.Errorf("%s: %w", s.name, s3.ErrDenied)
	}
	return nil
}

// change calls do, which changes the store, if the store answers.
func (s *side) change(what string, do func() error) error {
	if err := s.reach(); err != nil {
		return err
	}
	if s.net.Around == nil {
		return do()
	}
	return s.net.Around(s.name+" "+what, do)
}

func (s *side) Buckets(ctx context.Context) ([]string, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	return s.Store.Buckets(ctx)
}

func (s *side) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		if err := s.reach(); err != nil {
			yield(s3.Version{}, err)
			return
		}
		for v, err := range s.Store.Versions(ctx, bucket, after) {
			if lost := s.reach(); lost != nil {
				v, err = s3.Version{}, lost
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
		// If the store stopped answering during the listing, the listing is incomplete.
		if err := s.reach(); err != nil {
			yield(s3.Version{}, err)
		}
	}
}

func (s *side) VersionsOf(ctx context.Context, bucket, key string) ([]s3.Version, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	return s.Store.VersionsOf(ctx, bucket, key)
}

func (s *side) Describe(ctx context.Context, bucket string, v s3.Version) (s3.Attributes, error) {
	if err := s.reach(); err != nil {
		return s3.Attributes{}, err
	}
	return s.Store.Describe(ctx, bucket, v)
}

func (s *side) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	if err := s.reach(); err != nil {
		return s3.Content{}, err
	}
	return s.Store.Open(ctx, bucket, v, offset, length)
}

func (s *side) Settings(ctx context.Context, bucket string) (s3.Settings, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	return s.Store.Settings(ctx, bucket)
}

func (s *side) CreateBucket(ctx context.Context, bucket string, locked bool) error {
	return s.change("create "+bucket, func() error { return s.Store.CreateBucket(ctx, bucket, locked) })
}

func (s *side) RemoveBucket(ctx context.Context, bucket string) error {
	return s.change("drop "+bucket, func() error { return s.Store.RemoveBucket(ctx, bucket) })
}

func (s *side) Set(ctx context.Context, bucket string, name s3.SettingName, value string) error {
	return s.change("set "+bucket, func() error { return s.Store.Set(ctx, bucket, name, value) })
}

func (s *side) Put(ctx context.Context, bucket string, v s3.Version, old *s3.Version, content io.Reader, unchecked bool) error {
	return s.change("put "+bucket+"/"+v.Key, func() error {
		s.net.mu.Lock()
		full := s.net.full
		s.net.mu.Unlock()
		if full {
			return s3.ErrFull
		}
		return s.Store.Put(ctx, bucket, v, old, content, unchecked)
	})
}

func (s *side) PutMarker(ctx context.Context, bucket string, v s3.Version) error {
	return s.change("mark "+bucket+"/"+v.Key, func() error { return s.Store.PutMarker(ctx, bucket, v) })
}

func (s *side) Annotate(ctx context.Context, bucket string, v s3.Version, old s3.Attributes) error {
	return s.change("annotate "+bucket+"/"+v.Key, func() error { return s.Store.Annotate(ctx, bucket, v, old) })
}

func (s *side) Remove(ctx context.Context, bucket string, v s3.Version) error {
	return s.change("remove "+bucket+"/"+v.Key, func() error { return s.Store.Remove(ctx, bucket, v) })
}

func (s *side) SetAside(ctx context.Context, bucket string, v s3.Version, to string) error {
	return s.change("set-aside "+bucket+"/"+v.Key, func() error { return s.Store.SetAside(ctx, bucket, v, to) })
}

// TriggerEvent implements [minio.Store].
func (s *side) TriggerEvent(ctx context.Context, bucket, key string) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.TriggerEvent(ctx, bucket, key)
}

// ListenForRemovals implements [minio.Store]. It ends when the store does not answer.
func (s *side) ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		for ctx.Err() == nil {
			if err := s.reach(); err != nil {
				stop(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	if err := s.reach(); err != nil {
		return err
	}
	err := s.Store.ListenForRemovals(ctx, heard)
	return cmp.Or(context.Cause(ctx), err)
}

// Server implements [minio.Store].
func (s *side) Server(context.Context) (s3.Server, error) {
	if err := s.reach(); err != nil {
		return s3.Server{}, err
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	told := s3.Server{Version: cmp.Or(s.net.Releases[s.name], "2024-05-01T01:11:10Z"), Deployment: s.net.targetID, Drives: []s3.Drive{{Works: true, Free: s.net.free}}}
	if s.name == SourceSide {
		told.Deployment = s.net.id
	}
	return told, nil
}

// ExportIAM implements [minio.Store].
func (s *side) ExportIAM(context.Context) (*s3.IAM, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.name == SourceSide && time.Now().Before(s.net.loaded) {
		return nil, errNotReady
	}
	return s.net.iam[s.name], nil
}

var errNotReady = errors.New("XMinioServerNotInitialized: the server is not initialised yet")

// ImportIAM implements [minio.Store].
func (s *side) ImportIAM(_ context.Context, want *s3.IAM, may func(name string) bool) ([]string, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if beyond := s.net.iam[s.name].NotIn(want); !slices.ContainsFunc(beyond, func(name string) bool { return !may(name) }) {
		s.net.iam[s.name] = want
	}
	return s.net.Refused, nil
}

// Close implements [minio.Store].
func (*side) Close() {}

// SameIAM reports whether both stores have the same users.
func (b *Both) SameIAM() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.iam[SourceSide].Differences(b.iam[TargetSide])) == 0
}

// AddUser sets the users of standalone MinIO.
func (b *Both) AddUser(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.iam[SourceSide] = newIAM(names...)
}

// Disabled is the suffix of the name of a disabled user.
const Disabled = " (disabled)"

// userSecret is the secret of every user.
const userSecret = "s3cr3t-of-a-user"

// newIAM returns these users as a server exports them.
func newIAM(users ...string) *s3.IAM {
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	content := ""
	for i, name := range users {
		if i > 0 {
			content += ","
		}
		status := "enabled"
		if on, off := strings.CutSuffix(name, Disabled); off {
			name, status = on, "disabled"
		}
		content += fmt.Sprintf(`%q:{"secretKey":%q,"status":%q}`, name, userSecret, status)
	}
	put := func(name, content string) {
		file, err := files.Create("iam-assets/" + name + ".json")
		if err == nil {
			_, err = io.WriteString(file, "{"+content+"}")
		}
		if err != nil {
			panic(err)
		}
	}
	put("users", content)
	for _, name := range []string{"policies", "groups", "svcaccts", "user_mappings", "group_mappings", "stsuser_mappings"} {
		put(name, "")
	}
	if err := files.Close(); err != nil {
		panic(err)
	}
	iam, err := s3.ReadIAM(archive.Bytes())
	if err != nil {
		panic(err)
	}
	return iam
}
