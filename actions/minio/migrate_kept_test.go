package minio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// holding are stores of which the source keeps events back until it is asked for an echo, as some servers do.
type holding struct{ minio.Stores }

func (h holding) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := h.Stores.Store(addresses, credentials)
	if err != nil || !strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return &holdingSource{Store: store}, nil
}

type holdingSource struct {
	minio.Store
	mu   sync.Mutex
	kept []func()
}

func (s *holdingSource) ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error {
	return s.Store.ListenForRemovals(ctx, func(removal s3.Removal) {
		if removal.Nothing {
			heard(removal)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = append(s.kept, func() { heard(removal) })
	})
}

func (s *holdingSource) TriggerEvent(ctx context.Context, bucket, key string) error {
	s.mu.Lock()
	kept := s.kept
	s.kept = nil
	s.mu.Unlock()
	for _, tell := range kept {
		tell()
	}
	return s.Store.TriggerEvent(ctx, bucket, key)
}

// TestWhatIsHeardOnlyAfterTheQuestionIsRemoved, and not set aside; what is not heard stays.
func TestWhatIsHeardOnlyAfterTheQuestionIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target, h := s3sim.New(), s3sim.New(), &listener{}
		source.AddBucket("b", nil)
		target.AddBucket("b", nil)
		life, over := context.WithCancel(t.Context())
		defer over()
		from := &holdingSource{Store: plainStore{source}}
		if err := h.listen(actions.WithRunContext(life), minio.SinglePod{UID: "one"}, "store", func() (minio.Store, error) { return from, nil }); err != nil {
			t.Fatal(err)
		}
		var kept replica.Kept
		for _, key := range []string{"removed", "lost"} {
			v := source.Write("b", key, "text", s3.Attributes{}, time.Now())
			target.Write("b", key, "text", s3.Attributes{}, v.Modified)
			kept.Items = append(kept.Items, replica.Item{Bucket: "b", Version: v})
			kept.Count++
		}
		source.Delete("b", "removed", time.Now())
		source.Lose("b", "lost", s3.NullVersion)
		both := sides{source: from, target: &fencedStore{Store: plainStore{target}, service: newFence(newService()), released: func(string) bool { return false }}, listener: h}
		rest, err := both.removeReported(t.Context(), kept)
		if err != nil || rest.Count != 1 || len(rest.Items) != 1 || rest.Items[0].Key != "lost" {
			t.Errorf("%v, %+v", err, rest)
		}
		if has := target.Dump(); strings.Contains(has, "removed") || !strings.Contains(has, "lost") {
			t.Errorf("it has\n%s", has)
		}
	})
}

// TestWhatWasRemovedRightBeforeTheOutageIsHeard, though the pod that reports it is replaced then.
func TestWhatWasRemovedRightBeforeTheOutageIsHeard(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "removed", "text", s3.Attributes{}, time.Now())
		once := sync.OnceFunc(func() { b.Source.Delete(plain, "removed", time.Now()) })
		b.BeforeEffect = func(effect string) {
			if effect == "patch "+minio.ServiceRef(miniosim.Namespace).String() {
				once()
			}
		}
		b.asks()
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration, listener: &listener{}}
		m.Stores = holding{miniosim.Network{Both: b.Both}}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.ends(r, handedOver)
		if has := b.Target.Dump(); strings.Contains(has, "removed") {
			t.Errorf("it is set aside:\n%s", has)
		}
	})
}

// TestWhatTheSourceHasAfterAllIsNotMoved: a listing may have left it out.
func TestWhatTheSourceHasAfterAllIsNotMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := s3sim.New(), s3sim.New()
		source.AddBucket("b", nil)
		target.AddBucket("b", nil)
		both := sides{source: plainStore{source}, target: &fencedStore{Store: plainStore{target}, service: newFence(newService())}}
		for key, ago := range map[string]time.Duration{"there": 0, "newer": -time.Minute, "older": time.Minute, "lost": 0} {
			v := target.Write("b", key, "text", s3.Attributes{}, time.Now())
			if key != "lost" {
				source.Write("b", key, "text", s3.Attributes{}, v.Modified.Add(-ago))
			}
			if err := both.putAside(t.Context(), replica.Item{Bucket: "b", Version: v}); err != nil {
				t.Error(err)
			}
			left, err := target.VersionsOf(t.Context(), "b", key)
			if moves := key == "older" || key == "lost"; err != nil || (len(left) == 0) != moves {
				t.Errorf("%s: %v, %v", key, left, err)
			}
		}
		for _, store := range []*s3sim.Store{source, target} {
			store.AddBucket("versions", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		}
		v := target.Write("versions", "key", "lost", s3.Attributes{}, time.Now())
		source.Write("versions", "other", "text", s3.Attributes{}, time.Now())
		source.Write("versions", "key", "another version", s3.Attributes{}, time.Now().Add(time.Minute))
		if err := both.putAside(t.Context(), replica.Item{Bucket: "versions", Version: v}); err != nil {
			t.Error(err)
		}
		if left, err := target.VersionsOf(t.Context(), "versions", "key"); err != nil || len(left) != 0 {
			t.Errorf("of a version of its own is left %v, %v", left, err)
		}
	})
}

// TestNoMoreIsSetAsideThanALittleInAll: a person decides about what comes after that. What is moved is on record
// before.
func TestNoMoreIsSetAsideThanALittleInAll(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		lose := func(from, to int) {
			for i := from; i < to; i++ {
				b.Source.Lose(plain, fmt.Sprintf("object-%02d", i), s3.NullVersion)
			}
		}
		for i := range 30 {
			b.Source.Write(plain, fmt.Sprintf("object-%02d", i), "text", s3.Attributes{}, time.Now())
		}
		b.Target.BeforeEffect = func(effect string) {
			if key, is := strings.CutPrefix(effect, "set-aside "); is && !slices.ContainsFunc(b.cut().Aside, func(name string) bool { return strings.HasPrefix(name, "object "+key+" (") }) {
				t.Errorf("%s is moved, and on record is %v", key, b.cut().Aside)
			}
		}
		inTheOutage := sync.OnceFunc(func() { lose(maxAside, 30) })
		b.BeforeEffect = func(effect string) {
			if effect == "patch "+minio.ServiceRef(miniosim.Namespace).String() {
				inTheOutage()
			}
		}
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		lose(0, maxAside)
		b.Cordon("a", false)
		b.held(journal.StepCutOverMinio, MinioSourceKept, "does not have 10 items")
		if has := b.Target.Dump(); len(b.cut().Aside) != maxAside || strings.Count(has, `"`+plain+`/object-`) != maxAside || strings.Count(has, `"object-`) != 10 {
			t.Errorf("set aside are %v, and ha-minio has\n%s", b.cut().Aside, has)
		}
		b.backs()
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestWhatIsSetAsideTwiceCountsOnce: the first time ended in its middle.
func TestWhatIsSetAsideTwiceCountsOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "lost", "text", s3.Attributes{}, time.Now())
		away := sync.OnceFunc(func() { b.Target.SetDown(true) })
		b.Target.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "set-aside ") {
				away()
			}
		}
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.Source.Lose(plain, "lost", s3.NullVersion)
		b.Cordon("a", false)
		b.comes("noted cut-over")
		b.Pass(time.Minute)
		b.Target.SetDown(false)
		b.Retry(r)
		b.comes("done cut-over")
		if aside := b.cut().Aside; len(aside) != 1 {
			t.Errorf("on record is %q", aside)
		}
		b.ends(r, handedOver)
	})
}

// TestMoreThanIsNamedIsNotSetAside: a few of them may be left when the named ones were removed after all.
func TestMoreThanIsNamedIsNotSetAside(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		v := b.Target.Write(plain, "lost", "text", s3.Attributes{}, time.Now())
		a := &attempt{migrator: &migrator{}, step: actions.StepContext{Action: recordOf(t, ours, nil)}}
		err := a.setAside(w.T.Context(), b.both(), replica.Kept{Count: 2, Items: []replica.Item{{Bucket: plain, Version: v}}}, nil)
		if !errors.As(err, new(*actions.UnfinishedError)) || a.state.Lost.Count != 2 || len(a.state.Aside) != 0 {
			t.Errorf("%v, lost are %+v, aside %q", err, a.state.Lost, a.state.Aside)
		}
	})
}
