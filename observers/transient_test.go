package observers_test

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
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// soon is how long EKCO may take to be ready again once the API answers.
const soon = 40 * time.Second

// once meets the first call of a kind with a fault, and no other.
func once(call string, met observerstest.Fault) func(string) observerstest.Fault {
	return func(now string) observerstest.Fault {
		if now != call {
			return observerstest.Fault{}
		}
		call = ""
		return met
	}
}

func TestAStreamedListWithoutAnEndDoesNotKeepEKCOWaiting(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Streams = true
		b.Put(node("a", "1"))
		b.Fault = once("watch nodes", observerstest.Fault{Mute: true})
	}, func(b *bench) {
		b.ReadyAfter(soon)
		b.Wrote("node.observed a 1 worker")
		b.Put(node("b", "2"))
		b.Settle()
		b.Wrote("node.observed b 2 worker")
	})
}

func TestAnOutageEndsAlthoughOneStreamedListHasNoEnd(t *testing.T) {
	for _, mute := range []string{"watch nodes", "watch pods"} {
		watching(t, func(b *bench, _ *observers.Options) {
			b.Streams = true
			b.Put(node("a", "1"))
		}, func(b *bench) {
			b.SetUnknown(map[string]string{"a": "1"})
			b.Settle()
			b.Fall(observerstest.ErrRefused)
			b.Pass(20 * time.Second)
			if b.Synced() {
				t.Fatal("that was no outage")
			}
			b.Set(func() { b.Fault = once(mute, observerstest.Fault{Mute: true}) })
			b.Rise()
			b.ReadyAfter(soon)
		})
	}
}

// An API server that starts refuses everything until it has read the roles.
func TestNodesThatWereRefusedForAMomentAreReadAgainSoon(t *testing.T) {
	watching(t, func(b *bench, options *observers.Options) {
		options.PollInterval = 24 * time.Hour
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Set(func() { b.Forbidden["list nodes"] = true })
		b.BreakWatches()
		b.Pass(7 * time.Second)
		if b.Synced() {
			t.Fatal("nodes that cannot be observed are no outage")
		}
		b.Set(func() { clear(b.Forbidden) })
		b.ReadyAfter(soon)
	})
}

// faults are what a call can meet.
var faults = map[string]observerstest.Fault{
	"refused":      {Err: fmt.Errorf("%w: dial tcp: %w", kube.ErrUnavailable, syscall.ECONNREFUSED)},
	"unreachable":  {Err: observerstest.ErrRefused},
	"busy":         {Err: apierrors.NewTooManyRequests("slow down", 1)},
	"forbidden":    {Err: apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("not yet"))},
	"not found":    {Err: apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")},
	"unauthorized": {Err: apierrors.NewUnauthorized("who is that?")},
	"internal":     {Err: apierrors.NewInternalError(errors.New("etcd is away"))},
	"behind":       {Err: apierrors.NewTimeoutError("Too large resource version", 1)},
	"expired":      {Err: apierrors.NewResourceExpired("too old")},
	"unknown":      {Err: errors.New("something else")},
	"hangs":        {Hangs: true},
	"mute":         {Mute: true},
}

// disturb has calls meet some of a few faults.
func disturb(b *bench, rng *rand.Rand, few []string) {
	often := 0.3 + 0.6*rng.Float64()
	var mu sync.Mutex                                // calls meet their faults side by side,
	theirs := rand.New(rand.NewPCG(rng.Uint64(), 0)) // and beside what follows here
	b.Set(func() {
		b.Fault = func(string) observerstest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if theirs.Float64() > often {
				return observerstest.Fault{}
			}
			return faults[few[theirs.IntN(len(few))]]
		}
	})
	switch rng.IntN(3) {
	case 0:
		b.BreakWatches()
	case 1:
		b.BreakStreams()
	}
	if rng.IntN(2) == 0 {
		b.ReportFailedCall(observerstest.ErrRefused)
	}
	b.Pass(time.Duration(rng.IntN(60)) * time.Second)
	b.Set(func() { b.Fault = nil })
	b.Pass(time.Duration(rng.IntN(10)) * time.Second)
}

func TestWhateverFailsForAWhileEKCOIsReadySoonAfterwards(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(faults))
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		few := []string{kinds[rng.IntN(len(kinds))], kinds[rng.IntN(len(kinds))]}
		streams := rng.IntN(2) == 0
		t.Run(fmt.Sprintf("%d %s streams %t", seed, strings.Join(few, "+"), streams), func(t *testing.T) {
			watching(t, func(b *bench, _ *observers.Options) {
				b.Streams = streams
				b.Put(node("a", "1"), node("b", "2"), pod("default/x", "3", "b"))
			}, func(b *bench) {
				b.Pass(time.Minute)
				b.SetUnknown(map[string]string{"b": "2"})
				for range 1 + rng.IntN(4) {
					disturb(b, rng, few)
				}
				b.ReadyAfter(soon)
				b.Pass(soon) // a watch that says nothing is not what this is about
				if !b.Synced() {
					t.Error("ready for a moment only")
				}
			})
		})
	}
}
