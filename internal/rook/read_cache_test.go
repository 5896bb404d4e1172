package rook_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// held are objects of which an answer waits, once it was made up, until it is let go.
type held struct {
	kube.Objects
	asked, let chan struct{}
}

func (h held) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	raw, err := h.Objects.ReadObject(ctx, ref)
	h.asked <- struct{}{}
	<-h.let
	return raw, err
}

func TestWhatSomebodyReadLatelyIsNotReadOnceMore(t *testing.T) {
	ref := rook.ResourceRef(journal.RookCluster)
	const age = time.Minute
	for name, test := range map[string]struct {
		before func(t *testing.T, objects *kubesim.Objects, lately *rook.ReadCache)
		reads  int
	}{
		"by nobody":                 {func(*testing.T, *kubesim.Objects, *rook.ReadCache) {}, 1},
		"just now":                  {func(t *testing.T, _ *kubesim.Objects, l *rook.ReadCache) { read(t, l, ref) }, 0},
		"by who is content himself": {func(t *testing.T, _ *kubesim.Objects, l *rook.ReadCache) { read(t, l.MaxAge(age), ref) }, 1},
		"too long ago": {func(t *testing.T, _ *kubesim.Objects, l *rook.ReadCache) {
			read(t, l, ref)
			time.Sleep(age)
		}, 1},
		"before a patch": {func(t *testing.T, _ *kubesim.Objects, l *rook.ReadCache) {
			read(t, l, ref)
			if _, err := l.PatchObject(t.Context(), ref, []kube.PatchOp{{Op: "test", Path: "/metadata/resourceVersion", Value: "1"}, {Op: "replace", Path: "/spec", Value: map[string]any{}}}); err != nil {
				t.Error(err)
			}
		}, 1},
		"before a replacement": {func(t *testing.T, _ *kubesim.Objects, l *rook.ReadCache) {
			if _, err := l.ReplaceObject(t.Context(), ref, read(t, l, ref)); err != nil {
				t.Error(err)
			}
		}, 1},
		"and could not tell": {func(t *testing.T, o *kubesim.Objects, l *rook.ReadCache) {
			read(t, l, ref)
			o.Outage(true)
			if _, err := l.ReadObject(t.Context(), ref); err == nil {
				t.Error("in an outage something is read")
			}
			o.Outage(false)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := kubesim.NewObjects()
				objects.Put(ref, `{"spec":{"mon":{"count":1}}}`)
				lately := rook.NewReadCache(objects)
				test.before(t, objects, lately)
				before := objects.Calls("get cephclusters")
				read(t, lately.MaxAge(age), ref)
				if n := objects.Calls("get cephclusters") - before; n != test.reads {
					t.Errorf("it was read %d times, want %d", n, test.reads)
				}
			})
		})
	}
}

// TestThatThereIsNothingIsKnownLatelyToo, and that it may not be read.
func TestThatThereIsNothingIsKnownLatelyToo(t *testing.T) {
	ref := rook.ResourceRef(journal.RookCluster)
	for want, prepare := range map[error]func(*kubesim.Objects){
		kube.ErrNotFound:  func(*kubesim.Objects) {},
		kube.ErrForbidden: func(o *kubesim.Objects) { o.Forbid("get cephclusters") },
	} {
		objects := kubesim.NewObjects()
		prepare(objects)
		lately := rook.NewReadCache(objects)
		for _, from := range []kube.Objects{lately, lately.MaxAge(time.Minute)} {
			if _, err := from.ReadObject(t.Context(), ref); !errors.Is(err, want) {
				t.Errorf("said is %v, want %v", err, want)
			}
		}
		if n := objects.Calls("get cephclusters"); n != 1 {
			t.Errorf("it was read %d times", n)
		}
	}
}

// TestAnAnswerFromBeforeAChangeIsNoneAfterIt, though it comes after it.
func TestAnAnswerFromBeforeAChangeIsNoneAfterIt(t *testing.T) {
	ref := rook.ResourceRef(journal.RookCluster)
	objects := kubesim.NewObjects()
	objects.Put(ref, `{"spec":{"mon":{"count":1}}}`)
	slow := held{objects, make(chan struct{}), make(chan struct{})}
	lately := rook.NewReadCache(slow)
	over := make(chan struct{})
	go func() {
		defer close(over)
		read(t, lately, ref)
	}()
	<-slow.asked
	if _, err := lately.PatchObject(t.Context(), ref, []kube.PatchOp{{Op: "test", Path: "/spec/mon/count", Value: 1}, {Op: "replace", Path: "/spec/mon/count", Value: 3}}); err != nil {
		t.Fatal(err)
	}
	slow.let <- struct{}{}
	<-over
	go func() {
		<-slow.asked
		slow.let <- struct{}{}
	}()
	if now := string(read(t, lately.MaxAge(time.Minute), ref)); now == "" || objects.Calls("get cephclusters") != 2 {
		t.Errorf("after the change known is %s, of %d reads", now, objects.Calls("get cephclusters"))
	}
}

// looking are objects that are looked at while they are changed.
type looking struct {
	kube.Objects
	look func()
}

func (l *looking) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	l.look()
	return l.Objects.PatchObject(ctx, ref, patch)
}

func TestAnAnswerFromWithinAChangeIsNoneAfterIt(t *testing.T) {
	ref := rook.ResourceRef(journal.RookCluster)
	objects := kubesim.NewObjects()
	objects.Put(ref, `{"spec":{"mon":{"count":1}}}`)
	changing := &looking{Objects: objects}
	lately := rook.NewReadCache(changing)
	changing.look = func() { read(t, lately, ref) }
	if _, err := lately.PatchObject(t.Context(), ref, []kube.PatchOp{{Op: "test", Path: "/spec/mon/count", Value: 1}, {Op: "replace", Path: "/spec/mon/count", Value: 3}}); err != nil {
		t.Fatal(err)
	}
	if now := string(read(t, lately.MaxAge(time.Minute), ref)); objects.Calls("get cephclusters") != 2 {
		t.Errorf("after the change known is %s, of %d reads", now, objects.Calls("get cephclusters"))
	}
}

// TestAnAnswerIsAsOldAsItsQuestion: what it says may be from the moment after that.
func TestAnAnswerIsAsOldAsItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := rook.ResourceRef(journal.RookCluster)
		objects := kubesim.NewObjects()
		objects.Put(ref, `{}`)
		slow := held{objects, make(chan struct{}), make(chan struct{})}
		lately := rook.NewReadCache(slow)
		go func() {
			for range 2 {
				<-slow.asked
				time.Sleep(40 * time.Second) // of the bubble
				slow.let <- struct{}{}
			}
		}()
		read(t, lately, ref)
		time.Sleep(20 * time.Second)
		read(t, lately.MaxAge(time.Minute), ref)
		if n := objects.Calls("get cephclusters"); n != 2 {
			t.Errorf("it was read %d times", n)
		}
	})
}

func read(t *testing.T, from kube.Objects, ref kube.Ref) json.RawMessage {
	t.Helper()
	raw, err := from.ReadObject(t.Context(), ref)
	if err != nil {
		t.Error(err)
	}
	return raw
}
