package minio

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// listenLease is the age of a connection at which EKCO opens the next one, because the server ends each connection
	// after an hour. Both connections listen for listenOverlap.
	listenLease   = 45 * time.Minute
	listenOverlap = time.Minute
	// listenRetry is the pause before EKCO connects again.
	listenRetry = 5 * time.Second
	// An echo is the event for a request that EKCO sends only to see this event. EKCO sends one each echoInterval, and
	// waits echoTimeout for the event: a server may delay events until it has enough of them.
	echoTimeout  = 3 * time.Second
	echoInterval = 20 * time.Millisecond
	// maxRemovals limits the removals that EKCO remembers between passes, at 24 bytes each. EKCO ignores further
	// removals.
	maxRemovals = 100_000
)

// listener remembers which removals standalone MinIO reported in events. EKCO removes only these objects from the copy
// without asking a person. It listens from the first connection of a migration to the end of the migration, but not
// while EKCO is away. It is nil if EKCO does not listen.
type listener struct {
	mu sync.Mutex
	// pod is the pod to which the listener is connected, and store is the id of the pod's store. life is the context of
	// the migration.
	pod, store string
	life       context.Context
	source     minio.Store
	// echoes has a callback for each expected echo, by key. silent is true if the pod reports no echoes, so that EKCO
	// stops waiting for them.
	echoes map[string]func()
	silent bool
	// removals has the removals since the last full pass. before has the removals between the last two full passes. The
	// values are milliseconds since 1970.
	removals, before map[removalHash]int64
	// failed is the reason why EKCO missed events. It is nil after the reason was logged.
	failed error
}

// removalHash identifies a removed version in little space, because keys may be long. It does not include the time.
type removalHash [16]byte

func hashOf(bucket, key, id string) removalHash {
	sum := sha256.Sum256([]byte(bucket + "\x00" + key + "\x00" + id)) // no part can contain a NUL
	return removalHash(sum[:16])
}

// listen starts to listen to a pod before it returns, if ctx is the context of an open migration. It closes the store
// when listening ends.
func (h *listener) listen(ctx context.Context, pod minio.SinglePod, id string, connect func() (minio.Store, error)) error {
	life := actions.RunContext(ctx)
	if h == nil || life == nil {
		return nil
	}
	h.mu.Lock()
	ended := h.life != nil && h.life.Err() != nil
	known := h.pod == pod.UID && !ended
	if h.store != id || h.removals == nil {
		h.removals, h.before = map[removalHash]int64{}, nil
	} else if ended {
		h.failed = errors.New("EKCO received no events after the last migration ended")
	}
	if h.pod, h.store = pod.UID, id; !known {
		h.life = life
	}
	h.mu.Unlock()
	if known {
		return nil
	}
	store, err := connect()
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pod = ""
		return err
	}
	h.mu.Lock()
	h.source, h.silent = store, false
	h.mu.Unlock()
	go h.follow(life, pod.UID, store)
	h.catchUp(ctx)
	return nil
}

// catchUp waits until the server has reported all earlier removals. After a timeout EKCO treats the rest as not
// removed.
func (h *listener) catchUp(ctx context.Context) {
	if h == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, echoTimeout)
	defer stop()
	heard := make(chan struct{})
	h.mu.Lock()
	source, key := h.source, fmt.Sprintf("ekco-echo-%d/%s", time.Now().UnixNano(), strings.Repeat("x", 200))
	if h.echoes == nil {
		h.echoes = map[string]func(){}
	}
	h.echoes[key] = sync.OnceFunc(func() { close(heard) })
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.echoes, key)
	}()
	if source == nil || h.isSilent(false) {
		return
	}
	buckets, err := source.Buckets(ctx)
	for err == nil && len(buckets) > 0 {
		err = source.TriggerEvent(ctx, buckets[0], key)
		select {
		case <-heard:
			return
		case <-ctx.Done():
			late := err == nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
			h.isSilent(late)
			err = errors.Join(err, ctx.Err())
		case <-time.After(echoInterval):
		}
	}
	if err != nil {
		h.storeFailure(fmt.Errorf("wait until standalone MinIO has reported all events: %w", err))
	}
}

// isSilent reports whether the server answered requests but reported no echo. If seen is true, it first records that.
func (h *listener) isSilent(seen bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = h.silent || seen
	return h.silent
}

// follow listens to a pod, with one connection after the other, until the migration is over or listens to another pod.
func (h *listener) follow(life context.Context, pod string, store minio.Store) {
	defer store.Close()
	for h.mustFollow(life, pod) {
		one, end := context.WithTimeout(life, listenLease+listenOverlap)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer end()
			if err := store.ListenForRemovals(one, h.storeRemoval); one.Err() == nil {
				h.storeFailure(err)
			}
		}()
		select {
		case <-time.After(listenLease):
			continue
		case <-ended: // the end of the migration closes it, too
		}
		select {
		case <-life.Done():
		case <-time.After(listenRetry):
		}
	}
}

func (h *listener) mustFollow(life context.Context, pod string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pod == pod && life.Err() == nil
}

func (h *listener) storeRemoval(removal s3.Removal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if echo := h.echoes[removal.Key]; echo != nil {
		echo()
	}
	if removal.Nothing {
		return
	}
	hash, at := hashOf(removal.Bucket, removal.Key, removal.ID), removal.At.UnixMilli()
	if was, known := h.removals[hash]; at > was && (known || len(h.removals) < maxRemovals) {
		h.removals[hash] = at
	}
}

func (h *listener) storeFailure(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
}

// takeFailure returns the reason why EKCO missed events, and clears it.
func (h *listener) takeFailure() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.failed = nil }()
	return h.failed
}

// isRemoved reports whether an event reported the removal of this version, its object or its bucket after the version
// was written. A version without a key means the bucket itself.
func (h *listener) isRemoved(bucket string, v s3.Version) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hash := range []removalHash{hashOf(bucket, v.Key, v.ID), hashOf(bucket, v.Key, ""), hashOf(bucket, "", "")} {
		for _, heard := range []map[removalHash]int64{h.removals, h.before} {
			if at, is := heard[hash]; is && v.Modified.UnixMilli() <= at {
				return true
			}
		}
	}
	return false
}

// forgetBeforePass forgets the removals from before the full pass that just ended, because that pass removed them from
// the copy.
func (h *listener) forgetBeforePass() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removals, h.before = map[removalHash]int64{}, h.removals
}

// releasedItems returns a function that reports whether a person released an item, so that EKCO may remove the item
// from the copy.
func (m *migrator) releasedItems(record journal.ActionRecord) (func(name string) bool, error) {
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return nil, err
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for preflight, shown := range map[string]journal.MinioFound{MinioNothingForeign: prepared.Foreign, MinioSourceKept: cut.Lost} {
		if isReleased(shown, shown, record, preflight) {
			for _, name := range shown.Names {
				names[name] = true
			}
		}
	}
	return func(name string) bool { return names[name] }, nil
}
