package rook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Runner runs programs in the pod that has ceph. It implements the Runner of
// package ceph.
type Runner struct {
	API API
	// Version selects the pod.
	Version func(ctx context.Context) (Version, error)
}

// Run runs argv in a pod that it looks up anew each time, because the one of
// before may be on the node that was lost. See [API.Exec].
func (r Runner) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	version, err := r.Version(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	pod, err := r.API.ToolsPod(ctx, version)
	if err != nil {
		return nil, nil, 0, err
	}
	return r.API.Exec(ctx, pod, argv)
}

// versionLasts is how long a version is believed. It only tells in which pod ceph
// is, and changes with an upgrade of Rook.
const versionLasts = time.Minute

// VersionOf returns a function for [Runner] that asks Rook, at most once a minute
// while the answer is a version. It is safe for concurrent use.
func VersionOf(api API) func(ctx context.Context) (Version, error) {
	return (&remembered{api: api}).version
}

// remembered is the version that Rook was last seen to have.
type remembered struct {
	api API

	mu   sync.Mutex
	last Version
	at   time.Time
}

func (r *remembered) version(ctx context.Context) (Version, error) {
	if last, recent := r.recent(); recent {
		return last, nil
	}
	found, err := r.api.Detect(ctx)
	switch {
	case err != nil:
		return Version{}, err
	case !found.Present:
		return Version{}, fmt.Errorf("detect Rook: %w: %s", kube.ErrNotFound, found.Why)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.at = found.Version, time.Now()
	return found.Version, nil
}

func (r *remembered) recent() (Version, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.last.Known && time.Since(r.at) < versionLasts
}
