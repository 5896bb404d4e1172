package rook

import (
	"context"
)

// Runner runs programs in the pod that has ceph. It implements the Runner of
// package ceph. Make one with [NewRunner]. It is safe for concurrent use.
type Runner struct {
	api     API
	version *remembered
}

// NewRunner returns a runner. It asks Rook for its version, which tells in which
// pod ceph is, at most once a minute while the answer is a version and programs
// can be run there.
func NewRunner(api API) Runner {
	return Runner{api: api, version: &remembered{api: api}}
}

// Run runs argv in a pod that it looks up anew each time, because the one of
// before may be on the node that was lost. See [API.Exec].
func (r Runner) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	version, err := r.version.ask(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	stdout, stderr, exitCode, err = r.runAs(ctx, version, argv)
	if err != nil && ctx.Err() == nil {
		// Rook may have been upgraded, and ceph be in another pod.
		r.version.forget()
	}
	return stdout, stderr, exitCode, err
}

func (r Runner) runAs(ctx context.Context, version Version, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	pod, err := r.api.ToolsPod(ctx, version)
	if err != nil {
		return nil, nil, 0, err
	}
	return r.api.Exec(ctx, pod, argv)
}
