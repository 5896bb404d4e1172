package replica

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

func TestMemoryLimitWaitsForRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := newMemoryLimit(10)
		first, _ := limit.acquire(t.Context(), 6)
		second, _ := limit.acquire(t.Context(), 4)
		var mu sync.Mutex
		var taken []int
		go func() {
			for _, bytes := range []int{1, 25, 1} {
				release, _ := limit.acquire(t.Context(), bytes)
				mu.Lock()
				taken = append(taken, bytes)
				mu.Unlock()
				if bytes == 1 {
					release()
				} else {
					time.AfterFunc(time.Second, release)
				}
			}
		}()
		wait := func(what string, want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(taken, want) {
				t.Errorf("%s: %v", what, taken)
			}
		}
		wait("full")
		first()
		wait("what is larger than the limit waits for all of it", 1)
		second()
		wait("and others wait for it", 1, 25)
		time.Sleep(time.Second)
		wait("until it is given back", 1, 25, 1)
	})
}

func TestWaitForMemoryEndsWithContext(t *testing.T) {
	limit := newMemoryLimit(10)
	if _, ok := limit.acquire(t.Context(), 100); !ok {
		t.Fatal("an unused limit refuses 100 bytes")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, ok := limit.acquire(ctx, 1); ok {
		t.Error("a used-up limit permits more")
	}
}

// version is one of many versions of an object, with attributes of its own.
func version(i int, metadata string) s3.Version {
	return s3.Version{Key: strings.Clone("key"), ID: fmt.Sprint(i), Attributes: &s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": metadata}}}
}

func TestVersionsKeepOnceWhatTheyHaveInCommon(t *testing.T) {
	var g objectBuilder
	for i := range 1000 {
		g.add(version(i, strings.Repeat("x", 2000)))
	}
	if g.attributes > 3000 || g.size > 1001*versionBytes+4000 {
		t.Errorf("the attributes take %d of %d bytes", g.attributes, g.size)
	}
	for _, v := range g.versions {
		if v.Attributes != g.versions[0].Attributes {
			t.Fatal("equal attributes are kept twice")
		}
	}
}

func TestManyVersionsWithAttributesOfTheirOwnKeepNoMoreThanThereIsRoomFor(t *testing.T) {
	var g objectBuilder
	for i := range 10_000 {
		g.add(version(i, fmt.Sprint(i, strings.Repeat("x", 2000))))
	}
	kept := 0
	for _, v := range g.versions {
		if v.Attributes != nil {
			kept++
		}
	}
	if g.attributes > maxAttributeBytes || kept < 500 || kept > 1100 || len(g.versions) != 10_000 {
		t.Errorf("%d of %d versions keep attributes, of %d bytes", kept, len(g.versions), g.attributes)
	}
	if p := (pair{source: g.versions}); p.isComplete() {
		t.Error("the pair is said to be complete")
	}
}

func TestListingStopsAtMemoryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := func(yield func(s3.Version, error) bool) {
			for i := range 100 {
				v := version(0, "x")
				v.Key = fmt.Sprintf("key %03d", i)
				if !yield(v, nil) {
					return
				}
			}
		}
		var one objectBuilder
		for v := range maps.Keys(maps.Collect(list)) {
			one.add(v)
			break
		}
		objects := make(chan object, 1000)
		go func() {
			defer close(objects)
			sendObjects(t.Context(), "", list, newMemoryLimit(3*one.size), objects)
		}()
		synctest.Wait()
		if len(objects) != 3 {
			t.Errorf("%d objects were listed ahead", len(objects))
		}
		seen := 0
		for o := range objects {
			seen++
			o.release()
		}
		if seen != 100 {
			t.Errorf("%d objects", seen)
		}
	})
}
