package primary_test

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

// killed is what a rotation panics with that is killed in a test: nothing is tidied up then.
type killed struct{}

// killAt has a rotation run until before its nth effect, and returns the effects that it was to
// have, the last of which it has not had.
func (w *world) killAt(n int) (effects []string) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, is := reason.(killed); !is {
				panic(reason)
			}
		}
	}()
	_, err := w.Before(func(effect string) {
		if effects = append(effects, effect); len(effects) == n {
			panic(killed{})
		}
	}).Run(w.t.Context())
	if err != nil && !errors.Is(err, primary.ErrFailed) {
		w.t.Fatal(err)
	}
	return effects
}

// halves counts the pairs that are none.
func (w *world) halves() (found []string) {
	for _, item := range primarytest.Items() {
		if !w.Whole(item) {
			found = append(found, item)
		}
	}
	return found
}

// kept wants a dated copy to have each of the old certificates that is no more in its place.
func (w *world) kept(before map[string]*x509.Certificate) {
	w.t.Helper()
	copies, err := filepath.Glob(filepath.Join(w.dir(), primary.Copies, "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for item, old := range before {
		if w.Leaf(item).Equal(old) {
			continue
		}
		if !slices.ContainsFunc(copies, func(dir string) bool {
			if _, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(item, ".conf")) + map[bool]string{true: ".conf", false: ".key"}[strings.HasSuffix(item, ".conf")]); err != nil {
				return false
			}
			copied := &primarytest.Host{T: w.t, Dir: dir}
			return copied.Whole(item) && copied.Leaf(item).Equal(old)
		}) {
			w.t.Errorf("the old %s is nowhere", item)
		}
	}
}

// TestKilledBeforeEachEffectTheNextOneComesToTheSameEnd kills a rotation at its effects, and in some
// cases also the one that mends it.
func TestKilledBeforeEachEffectTheNextOneComesToTheSameEnd(t *testing.T) {
	for name, broken := range map[string]bool{"that goes well": false, "of which a component does not come back": true} {
		t.Run(name, func(t *testing.T) {
			var effects []string
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				w.breaks(broken)
				effects = w.killAt(0)
			})
			for _, n := range crashpoints.Choose(t, len(effects)) {
				synctest.Test(t, func(t *testing.T) { killedAt(t, n, broken) })
			}
		})
	}
}

// TestARenewalByHandThatWasKilledKeepsTheOldFiles: everything is due again at once then, and may be renewed
// twice, but the copies are of what there was before the first time.
func TestARenewalByHandThatWasKilledKeepsTheOldFiles(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, 5*day)
		w.ByHand, w.TTL = true, 400*day
		return w
	}
	var effects []string
	synctest.Test(t, func(t *testing.T) { effects = start(t).killAt(0) })
	for n := 1; n <= len(effects); n += 7 {
		synctest.Test(t, func(t *testing.T) {
			w := start(t)
			before := w.leaves()
			w.killAt(n)
			time.Sleep(time.Minute)
			w.rotate()
			w.clean()
			w.kept(before)
		})
	}
}

// breaks has the API server not answer with new certificates. It returns those that it had.
func (w *world) breaks(broken bool) (had []string) {
	had = slices.Clone(w.Loaded("kube-apiserver"))
	w.Refuses = func(component string, loaded []string) string {
		if broken && component == "kube-apiserver" && !slices.Equal(loaded, had) {
			return "it cannot"
		}
		return ""
	}
	return had
}

func killedAt(t *testing.T, n int, broken bool) {
	w := newWorld(t, 5*day)
	before, had, starts := w.leaves(), w.breaks(broken), w.Starts("kube-scheduler")
	effects := w.killAt(n)
	if halves := w.halves(); len(halves) > 1 {
		t.Errorf("it leaves %v", halves)
	}
	if n%3 == 0 { // the one that mends is killed as well
		effects = append(effects, w.killAt(1+n%7)...)
	}
	w.kept(before)
	time.Sleep(time.Minute)
	if _, err := w.run(); err != nil && (!broken || !errors.Is(err, primary.ErrFailed)) {
		t.Error(err)
	}
	w.clean()
	w.kept(before)
	for item, after := range w.leaves() {
		old := broken && slices.Contains(had, certificates.Fingerprint(before[item]))
		if after.Equal(before[item]) != old {
			t.Errorf("that %s is the old one is %v", item, !old)
		}
	}
	if got := w.Starts("kube-scheduler"); got != starts+1 {
		t.Errorf("the scheduler was started %d times", got-starts)
	}
	if t.Failed() {
		t.Fatalf("it was killed at the end of %q, and then said:\n%s", effects, strings.Join(w.lines, "\n"))
	}
}

func TestTwoAtOnceWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		second := w.Rotation
		said := []string{}
		second.Say = func(line string) { said = append(said, line) }
		var other error
		done := make(chan struct{})
		w.Rotation = w.Before(func(effect string) {
			if effect == "prepare admin.conf" {
				go func() {
					defer close(done)
					_, other = second.Run(t.Context())
				}()
			}
		})
		w.rotate()
		<-done
		if other != nil || slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "Rotated") }) {
			t.Errorf("%v: it said %q", other, said)
		}
		w.clean()
	})
}

func TestOneThatIsInterruptedIsGoneOnWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		ctx, cancel := context.WithCancel(t.Context())
		before := w.Starts("kube-apiserver")
		w.Refuses = func(string, []string) string {
			if w.Starts("kube-apiserver") == before {
				return ""
			}
			cancel()
			return "not yet"
		}
		if _, err := w.Run(ctx); !errors.Is(err, context.Canceled) || !w.said("repeat the rotation") {
			t.Errorf("%v, it said %q", err, w.lines)
		}
		w.Refuses = nil
		w.rotate()
		w.clean()
	})
}

func TestOneThatIsInterruptedAtItsFirstLookChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		ctx, cancel := context.WithCancel(t.Context())
		before := w.leaves()
		w.Refuses = func(string, []string) string {
			cancel()
			return "not yet"
		}
		if _, err := w.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.renewed(before)
		w.tidy()
	})
}
