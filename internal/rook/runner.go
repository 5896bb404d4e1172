package rook

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Runner runs programs in the pod that has ceph. It implements Conversing of
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
	if err != nil {
		r.forgetUnlessGivenUp(ctx)
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

// Where names the pod in which Run would run a program now, looked up anew.
func (r Runner) Where(ctx context.Context) (place string, err error) {
	version, err := r.version.ask(ctx)
	if err != nil {
		return "", err
	}
	pod, err := r.api.ToolsPod(ctx, version)
	if err != nil {
		r.forgetUnlessGivenUp(ctx)
		return "", err
	}
	return pod.Name + "/" + pod.Container, nil
}

// Converse runs argv in the pod that Where named. See [API.Converse].
func (r Runner) Converse(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	name, container, found := strings.Cut(place, "/")
	if !found {
		return 0, fmt.Errorf("run %s: %q names no container of a pod", argv[0], place)
	}
	exitCode, err = r.api.Converse(ctx, Pod{Name: name, Container: container}, argv, stdin, stdout, stderr)
	if err != nil {
		r.forgetUnlessGivenUp(ctx)
	}
	return exitCode, err
}

// forgetUnlessGivenUp has Rook's version asked again after an error: Rook may have
// been upgraded, and ceph be in another pod.
func (r Runner) forgetUnlessGivenUp(ctx context.Context) {
	if ctx.Err() == nil {
		r.version.forget()
	}
}
