package rook

import (
	"context"
	"fmt"

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

// VersionOf returns a function for [Runner] that asks Rook each time.
func VersionOf(api API) func(ctx context.Context) (Version, error) {
	return func(ctx context.Context) (Version, error) {
		found, err := api.Detect(ctx)
		if err == nil && !found.Present {
			err = fmt.Errorf("detect Rook: %w: %s", kube.ErrNotFound, found.Why)
		}
		return found.Version, err
	}
}
