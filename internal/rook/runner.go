package rook

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Runner runs programs in a pod that has the ceph program. It implements InteractiveRunner of package ceph. Create it
// with [NewRunner]. It is safe for concurrent use.
type Runner struct {
	api     API
	version *cachedVersion
}

// NewRunner returns a runner. The runner needs the version of Rook to find the pod with ceph. It caches a known version
// for a minute, or until a program cannot run in the pod.
func NewRunner(api API) Runner {
	return Runner{api: api, version: &cachedVersion{api: api}}
}

// Run runs argv in the pod. It searches the pod each time, because the last pod may be on a lost node. See [API.Exec].
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

// Place returns the pod in which Run would run a program now.
func (r Runner) Place(ctx context.Context) (place string, err error) {
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

// Interact runs argv in the pod from Place. See [API.Interact].
func (r Runner) Interact(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	name, container, found := strings.Cut(place, "/")
	if !found {
		return 0, fmt.Errorf("run %s: %q is not POD/CONTAINER", argv[0], place)
	}
	exitCode, err = r.api.Interact(ctx, Pod{Name: name, Container: container}, argv, stdin, stdout, stderr)
	if err != nil {
		r.forgetUnlessGivenUp(ctx)
	}
	return exitCode, err
}

// forgetUnlessGivenUp drops the cached version after an error, because after an upgrade of Rook another pod may have
// ceph. It keeps the version if the caller has stopped waiting.
func (r Runner) forgetUnlessGivenUp(ctx context.Context) {
	if ctx.Err() == nil {
		r.version.forget()
	}
}
