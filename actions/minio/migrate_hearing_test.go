package minio

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// leased is a store that ends each connection after an hour.
type leased struct{ plainStore }

func (l leased) ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error {
	ctx, end := context.WithTimeout(ctx, time.Hour)
	defer end()
	return l.Store.ListenForRemovals(ctx, heard)
}

// TestARemovalIsProofOfNothingThatWasWrittenSince, nor of what another store lost.
func TestARemovalIsProofOfNothingThatWasWrittenSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := s3sim.New(), &listener{}
		store.AddBucket("b", nil)
		store.AddBucket("c", nil)
		life, over := context.WithCancel(t.Context())
		listens := func(pod, id string) {
			if err := h.listen(actions.WithRunContext(life), minio.SinglePod{UID: pod}, id, func() (minio.Store, error) { return leased{plainStore{store}}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		version := func(key string) s3.Version { return store.Write("b", key, "text", s3.Attributes{}, time.Now()) }
		unheard := version("unheard")
		store.Delete("b", "unheard", time.Now())
		listens("one", "store")
		old := version("key")
		store.Delete("b", "key", time.Now())
		time.Sleep(time.Second)
		later := version("key")
		lost := version("lost")
		store.Lose("b", "lost", s3.NullVersion)
		other := store.Write("c", "other", "text", s3.Attributes{}, time.Now())
		store.DropBucket("c")
		for name, test := range map[string]struct {
			bucket string
			v      s3.Version
			want   bool
		}{
			"before it listened": {"b", unheard, false}, "the same": {"b", old, true}, "written since": {"b", later, false}, "lost": {"b", lost, false},
			"with its bucket": {"c", other, true}, "a bucket": {"c", s3.Version{}, true}, "another bucket": {"b", s3.Version{}, false},
		} {
			if got := h.isRemoved(test.bucket, test.v); got != test.want {
				t.Errorf("%s: removed: %t", name, got)
			}
		}
		for range 20 { // as long as the migration is open, through the end of each connection
			time.Sleep(20 * time.Minute)
			v := version("often")
			if store.Delete("b", "often", time.Now()); !h.isRemoved("b", v) {
				t.Fatalf("it is not heard at %s", time.Now())
			}
		}
		h.forgetBeforePass()
		if !h.isRemoved("b", old) {
			t.Error("a pass that began before it may not have removed it")
		}
		if h.forgetBeforePass(); h.isRemoved("b", old) {
			t.Error("it is never forgotten")
		}
		v := version("often")
		store.Delete("b", "often", time.Now())
		listens("two", "another store")
		if h.isRemoved("b", v) {
			t.Error("what was removed from one store is proof for another")
		}
		over()
		synctest.Wait()
		v = version("late")
		if store.Delete("b", "late", time.Now()); h.isRemoved("b", v) {
			t.Error("it listens though the migration is over")
		}
		if err := h.takeFailure(); err != nil {
			t.Error(err)
		}
		life, over = context.WithCancel(t.Context())
		listens("two", "another store") // of the next migration
		v = version("next")
		if store.Delete("b", "next", time.Now()); !h.isRemoved("b", v) || h.takeFailure() == nil {
			t.Error("the next migration hears nothing, or nobody is told that there was a gap")
		}
		over()
		if (*listener)(nil).isRemoved("b", v) {
			t.Error("nobody listens, and it is heard")
		}
	})
}

// mute is a server that reports no echo, as older ones, or as one that is busy for a while.
type mute struct {
	plainStore
	until time.Time
}

func (m mute) TriggerEvent(ctx context.Context, bucket, key string) error {
	if time.Now().Before(m.until) || m.until.IsZero() {
		return nil
	}
	return m.plainStore.TriggerEvent(ctx, bucket, key)
}

// TestAPodThatReportedNoEchoDoesNotSpeakForTheNext.
func TestAPodThatReportedNoEchoDoesNotSpeakForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h, began := s3sim.New(), &listener{}, time.Now()
		store.AddBucket("b", nil)
		busy := mute{plainStore{store}, began.Add(2 * echoTimeout)}
		for _, pod := range []string{"one", "two", "three"} {
			if err := h.listen(actions.WithRunContext(t.Context()), minio.SinglePod{UID: pod}, "store", func() (minio.Store, error) { return busy, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*echoTimeout || h.isSilent(false) {
			t.Errorf("it took %s, and nobody waits for an echo: %t", took, h.isSilent(false))
		}
	})
}

// TestAServerThatReportsNoEchoIsWaitedForOnce: clients wait, too, when EKCO asks for it in the switch.
func TestAServerThatReportsNoEchoIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := s3sim.New(), &listener{}
		store.AddBucket("b", nil)
		began := time.Now()
		if err := h.listen(actions.WithRunContext(t.Context()), minio.SinglePod{UID: "one"}, "store", func() (minio.Store, error) { return mute{plainStore: plainStore{store}}, nil }); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			h.catchUp(t.Context())
		}
		if took := time.Since(began); took != echoTimeout || h.takeFailure() == nil || h.takeFailure() != nil {
			t.Errorf("it took %s", took)
		}
		v := store.Write("b", "key", "text", s3.Attributes{}, time.Now())
		if store.Delete("b", "key", time.Now()); !h.isRemoved("b", v) {
			t.Error("what it reports is not heard")
		}
	})
}

// TestWhatIsHeardTakesLittleMemory, however long the keys are, and what exceeds it is not known to be removed.
func TestWhatIsHeardTakesLittleMemory(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	h := &listener{removals: map[removalHash]int64{}}
	at, long, before := time.Now(), strings.Repeat("x", 1000), heap()
	take := func(i int, at time.Time) {
		h.storeRemoval(s3.Removal{Bucket: "bucket", Key: fmt.Sprint(long, i), ID: s3.NullVersion, At: at})
	}
	removed := func(i int, at time.Time) bool {
		return h.isRemoved("bucket", s3.Version{Key: fmt.Sprint(long, i), ID: s3.NullVersion, Modified: at})
	}
	for range 2 {
		h.forgetBeforePass()
		for i := range maxRemovals + 1 {
			take(i, at)
		}
	}
	if took := heap() - before; took > 24<<20 {
		t.Errorf("it takes %d MiB", took>>20)
	}
	if !removed(maxRemovals-1, at) || removed(maxRemovals, at) {
		t.Error("not as many are known as shall be")
	}
	take(0, at.Add(time.Minute)) // also when there is no room for others
	take(0, at)
	if !removed(0, at.Add(time.Minute)) || removed(0, at.Add(2*time.Minute)) {
		t.Error("it is not the last removal that counts")
	}
}

// TestARemovalOfNothingIsNoProof: what was not there may have been lost.
func TestARemovalOfNothingIsNoProof(t *testing.T) {
	h := &listener{removals: map[removalHash]int64{}}
	h.storeRemoval(s3.Removal{Bucket: "bucket", Key: "key", ID: s3.NullVersion, At: time.Now(), Nothing: true})
	if h.isRemoved("bucket", s3.Version{Key: "key", ID: s3.NullVersion, Modified: time.Now().Add(-time.Hour)}) {
		t.Error("it counts")
	}
}

// TestARemovalIsOfThatVersion, or of all of an object or a bucket.
func TestARemovalIsOfThatVersion(t *testing.T) {
	at := time.Now()
	v := s3.Version{Key: "key", ID: "one", Modified: at}
	for removal, want := range map[s3.Removal]bool{
		{Bucket: "b", Key: "key", ID: "one"}: true, {Bucket: "b", Key: "key", ID: "two"}: false, {Bucket: "b", Key: "key"}: true,
		{Bucket: "b"}: true, {Bucket: "b", Key: "other", ID: "one"}: false, {Bucket: "c", Key: "key", ID: "one"}: false,
	} {
		h := &listener{removals: map[removalHash]int64{}}
		heard := removal
		heard.At = at
		if h.storeRemoval(heard); h.isRemoved("b", v) != want {
			t.Errorf("%+v: removed: %t", removal, !want)
		}
	}
}

// cut is a store whose connections end at once with an error, if so. It counts when it is closed.
type cut struct {
	plainStore
	ends   bool
	closed *atomic.Int64
}

func (c cut) ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error {
	if c.ends {
		return errors.New("the connection ends")
	}
	return c.Store.ListenForRemovals(ctx, heard)
}

func (c cut) Close() { c.closed.Add(1) }

// TestAConnectionIsOfOneMigrationAndPod, and that it ends by itself is told.
func TestAConnectionIsOfOneMigrationAndPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h, closed := s3sim.New(), &listener{}, &atomic.Int64{}
		store.AddBucket("b", nil)
		ends := false
		listens := func(life context.Context, pod string) {
			t.Helper()
			if err := h.listen(life, minio.SinglePod{UID: pod}, "store", func() (minio.Store, error) { return cut{plainStore{store}, ends, closed}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if listens(t.Context(), "one"); h.store != "" {
			t.Error("it listens without a migration")
		}
		first, over := context.WithCancel(t.Context())
		second, end := context.WithCancel(t.Context())
		defer end()
		listens(actions.WithRunContext(first), "one")
		listens(actions.WithRunContext(second), "one") // which begins before the other has ended
		over()
		synctest.Wait()
		listens(actions.WithRunContext(second), "one")
		v := store.Write("b", "key", "text", s3.Attributes{}, time.Now())
		if store.Delete("b", "key", time.Now()); !h.isRemoved("b", v) || h.takeFailure() == nil {
			t.Error("the second migration hears nothing, or nobody is told of the gap")
		}
		before := closed.Load()
		listens(actions.WithRunContext(second), "two")
		if time.Sleep(listenLease + listenOverlap); closed.Load() != before+1 {
			t.Errorf("%d connections were closed with the pod of before", closed.Load()-before)
		}
		if err := h.takeFailure(); err != nil {
			t.Error(err)
		}
		ends = true
		listens(actions.WithRunContext(second), "three")
		synctest.Wait()
		if h.takeFailure() == nil {
			t.Error("nobody is told that a connection ended")
		}
	})
}
