package rook

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
)

// upgrading is a Rook whose version changes.
type upgrading struct {
	API
	found Installation
	asked int
	// takes is how long it thinks.
	takes time.Duration
	// podOf is the version that a pod was last looked up for.
	podOf         Version
	noPod, noExec error
}

func (u *upgrading) Detect(ctx context.Context) (Installation, error) {
	u.asked++
	if err := sim.Wait(ctx, u.takes); err != nil {
		return Installation{}, err
	}
	return u.found, nil
}

func (u *upgrading) ToolsPod(_ context.Context, version Version) (Pod, error) {
	u.podOf = version
	return Pod{}, u.noPod
}

func (u *upgrading) Exec(context.Context, Pod, []string) (stdout, stderr []byte, exitCode int, err error) {
	return nil, nil, 0, u.noExec
}

func TestRooksVersionIsAskedForOnceAMinuteAndWhatIsUnknownEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &upgrading{}
		version := (&cachedVersion{api: api}).ask
		want := func(want Version, asked int) {
			t.Helper()
			got, err := version(t.Context())
			if got != want || (err != nil) != !api.found.Present || api.asked != asked {
				t.Errorf("got %v, %v after %d questions, want %v after %d", got, err, api.asked, want, asked)
			}
		}
		want(Version{}, 1)
		if _, err := version(t.Context()); !errors.Is(err, kube.ErrNotFound) {
			t.Errorf("without Rook: %v", err)
		}
		api.found.Present = true
		want(Version{}, 3)
		want(Version{}, 4)
		old, upgraded := Version{Known: true, Major: 1, Minor: 3}, Version{Known: true, Major: 1, Minor: 10}
		api.found.Version = old
		want(old, 5)
		api.found.Version = upgraded
		want(old, 5)
		time.Sleep(maxVersionAge)
		want(upgraded, 6)
	})
}

func TestTheVersionIsAskedForAgainOnceProgramsCannotBeRun(t *testing.T) {
	failure := errors.New("the exec failed")
	for name, test := range map[string]struct {
		toolsPod, exec error
		again          bool
	}{
		"there is no pod":     {toolsPod: ErrNoToolsPod, again: true},
		"the exec failed":     {exec: failure, again: true},
		"the program has run": {},
	} {
		t.Run(name, func(t *testing.T) {
			api := &upgrading{found: Installation{Present: true, Version: Version{Known: true, Major: 1, Minor: 3}}}
			runner := NewRunner(api)
			run := func() Version {
				_, _, _, err := runner.Run(t.Context(), []string{"ceph"})
				if want := errors.Join(api.noPod, api.noExec); (err != nil) != (want != nil) {
					t.Errorf("got %v, want %v", err, want)
				}
				return api.podOf
			}
			old := run()
			api.noPod, api.noExec = test.toolsPod, test.exec
			run()
			api.noPod, api.noExec = nil, nil
			api.found.Version.Minor = 10
			if changed := run() != old; changed != test.again {
				t.Errorf("it was asked for again: %v, want %v", changed, test.again)
			}
		})
	}
}

func TestThoseWhoNeedTheVersionAtTheSameTimeShareOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, found := range map[string]Installation{
			"known": {Present: true, Version: Version{Known: true, Major: 1}}, "unknown": {Present: true}, "no Rook": {},
		} {
			api := &upgrading{found: found, takes: time.Second}
			version := &cachedVersion{api: api}
			var asking sync.WaitGroup
			for range 8 {
				asking.Go(func() {
					if got, err := version.ask(t.Context()); got != found.Version || (err != nil) == found.Present {
						t.Errorf("%s: got %v, %v", name, got, err)
					}
				})
			}
			asking.Wait()
			if api.asked != 1 {
				t.Errorf("%s: %d questions", name, api.asked)
			}
		}
	})
}

func TestWhoGivesUpTheQuestionForTheVersionSpoilsNothingForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &upgrading{found: Installation{Present: true, Version: Version{Known: true, Major: 1}}, takes: time.Second}
		version := &cachedVersion{api: api}
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		for i := range 3 {
			ctx := t.Context()
			if i < 2 {
				ctx = impatient
			}
			asking.Go(func() {
				if _, err := version.ask(ctx); errors.Is(err, context.DeadlineExceeded) != (i < 2) {
					t.Errorf("%d got %v", i, err)
				}
			})
			synctest.Wait() // the impatient one asks, and the others wait for it
		}
		asking.Wait()
		if api.asked != 2 {
			t.Errorf("%d questions", api.asked)
		}
	})
}
