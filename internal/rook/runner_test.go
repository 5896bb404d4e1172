package rook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// upgrading is a Rook whose version changes.
type upgrading struct {
	API
	found Installation
	asked int
}

func (u *upgrading) Detect(context.Context) (Installation, error) {
	u.asked++
	return u.found, nil
}

func TestRooksVersionIsAskedForOnceAMinuteAndWhatIsUnknownEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &upgrading{}
		version := VersionOf(api)
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
		time.Sleep(versionLasts)
		want(upgraded, 6)
	})
}
