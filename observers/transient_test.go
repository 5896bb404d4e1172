package observers

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/replicatedhq/ekco/internal/kube"
)

// soon is how long EKCO may take to be ready again once the API answers.
const soon = 40 * time.Second

// once meets the first call of a kind with a fault, and no other.
func once(call string, met fault) func(string) fault {
	return func(now string) fault {
		if now != call {
			return fault{}
		}
		call = ""
		return met
	}
}

// readyAfter waits until the observers are in sync with the cluster.
func (b *bench) readyAfter(limit time.Duration) {
	b.Helper()
	began := time.Now()
	for !b.Synced() {
		if time.Since(began) > limit {
			b.Fatalf("the API answers, and EKCO is not ready after %s:\n%s", limit, b.log)
		}
		b.pass(time.Second)
	}
}

func TestAStreamedListWithoutAnEndDoesNotKeepEKCOWaiting(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.streams = true
		b.put(node("a", "1"))
		b.fault = once("watch nodes", fault{mute: true})
	}, func(b *bench) {
		b.readyAfter(soon)
		b.wrote("node.observed a 1 worker")
		b.put(node("b", "2"))
		b.settle()
		b.wrote("node.observed b 2 worker")
	})
}

func TestAnOutageEndsAlthoughOneStreamedListHasNoEnd(t *testing.T) {
	for _, mute := range []string{"watch nodes", "watch pods"} {
		watching(t, func(b *bench, _ *Options) {
			b.streams = true
			b.put(node("a", "1"))
		}, func(b *bench) {
			b.SetUnknown(map[string]string{"a": "1"})
			b.settle()
			b.fall(errRefused)
			b.pass(20 * time.Second)
			if b.Synced() {
				t.Fatal("that was no outage")
			}
			b.set(func() { b.fault = once(mute, fault{mute: true}) })
			b.rise()
			b.readyAfter(soon)
		})
	}
}

// An API server that starts refuses everything until it has read the roles.
func TestNodesThatWereRefusedForAMomentAreReadAgainSoon(t *testing.T) {
	watching(t, func(b *bench, options *Options) {
		options.PollInterval = 24 * time.Hour
		b.put(node("a", "1"))
	}, func(b *bench) {
		b.set(func() { b.forbidden["list nodes"] = true })
		b.breakWatches()
		b.pass(7 * time.Second)
		if b.Synced() {
			t.Fatal("nodes that cannot be observed are no outage")
		}
		b.set(func() { clear(b.forbidden) })
		b.readyAfter(soon)
	})
}

// faults are what a call can meet.
var faults = map[string]fault{
	"refused":      {err: fmt.Errorf("%w: dial tcp: %w", kube.ErrUnavailable, syscall.ECONNREFUSED)},
	"unreachable":  {err: errRefused},
	"busy":         {err: apierrors.NewTooManyRequests("slow down", 1)},
	"forbidden":    {err: apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("not yet"))},
	"not found":    {err: apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")},
	"unauthorized": {err: apierrors.NewUnauthorized("who is that?")},
	"internal":     {err: apierrors.NewInternalError(errors.New("etcd is away"))},
	"behind":       {err: apierrors.NewTimeoutError("Too large resource version", 1)},
	"expired":      {err: apierrors.NewResourceExpired("too old")},
	"unknown":      {err: errors.New("something else")},
	"hangs":        {hangs: true},
	"mute":         {mute: true},
}

// disturb has calls meet some of a few faults.
func (b *bench) disturb(rng *rand.Rand, few []string) {
	often := 0.3 + 0.6*rng.Float64()
	// Calls meet their faults side by side, and some after this has returned.
	var mu sync.Mutex
	lots := rand.New(rand.NewPCG(rng.Uint64(), 0))
	b.set(func() {
		b.fault = func(string) fault {
			mu.Lock()
			defer mu.Unlock()
			if lots.Float64() > often {
				return fault{}
			}
			return faults[few[lots.IntN(len(few))]]
		}
	})
	switch rng.IntN(3) {
	case 0:
		b.breakWatches()
	case 1:
		b.breakStreams()
	}
	if rng.IntN(2) == 0 {
		b.Suspect(errRefused)
	}
	b.pass(time.Duration(rng.IntN(60)) * time.Second)
	b.set(func() { b.fault = nil })
	b.pass(time.Duration(rng.IntN(10)) * time.Second)
}

func TestWhateverFailsForAWhileEKCOIsReadySoonAfterwards(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(faults))
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		few := []string{kinds[rng.IntN(len(kinds))], kinds[rng.IntN(len(kinds))]}
		streams := rng.IntN(2) == 0
		t.Run(fmt.Sprintf("%d %s streams %t", seed, strings.Join(few, "+"), streams), func(t *testing.T) {
			watching(t, func(b *bench, _ *Options) {
				b.streams = streams
				b.put(node("a", "1"), node("b", "2"), pod("default/x", "3", "b"))
			}, func(b *bench) {
				b.pass(time.Minute)
				b.SetUnknown(map[string]string{"b": "2"})
				for range 1 + rng.IntN(4) {
					b.disturb(rng, few)
				}
				b.readyAfter(soon)
				b.pass(soon) // a watch that says nothing is not what this is about
				if !b.Synced() {
					t.Error("ready for a moment only")
				}
			})
		})
	}
}
