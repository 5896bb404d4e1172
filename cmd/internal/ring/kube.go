package ring

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// watchedKube is the Kubernetes API with two duties: the observers learn of
// every call that was not answered, and a dry run changes nothing.
type watchedKube struct {
	kube.API
	ring   *Ring
	dryRun bool
}

// seen passes an error on after the observers have been told.
func (k *watchedKube) seen(err error) error {
	if err != nil && errors.Is(err, kube.ErrUnavailable) {
		if observers := k.ring.watching.Load(); observers != nil {
			(*observers).Suspect(err)
		}
	}
	return err
}

func (k *watchedKube) change(effect func() error) error {
	if k.dryRun {
		return kube.ErrReadOnly // nothing should get that far
	}
	return k.seen(effect())
}

// Node implements kube.API.
func (k *watchedKube) Node(ctx context.Context, name string) (kube.Node, error) {
	node, err := k.API.Node(ctx, name)
	return node, k.seen(err)
}

// Pod implements kube.API.
func (k *watchedKube) Pod(ctx context.Context, namespace, name string) (kube.Pod, error) {
	pod, err := k.API.Pod(ctx, namespace, name)
	return pod, k.seen(err)
}

// DeleteNode implements kube.API.
func (k *watchedKube) DeleteNode(ctx context.Context, name, uid string) error {
	return k.change(func() error { return k.API.DeleteNode(ctx, name, uid) })
}

// ForceDeletePod implements kube.API.
func (k *watchedKube) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return k.change(func() error { return k.API.ForceDeletePod(ctx, namespace, name, uid) })
}

// WriteMirror implements kube.API.
func (k *watchedKube) WriteMirror(ctx context.Context, content []byte, version string) (written string, err error) {
	err = k.change(func() error {
		written, err = k.API.WriteMirror(ctx, content, version)
		return err
	})
	return written, err
}

// RecordEvent implements kube.API.
func (k *watchedKube) RecordEvent(ctx context.Context, about journal.Subject, note kube.Note) error {
	return k.change(func() error { return k.API.RecordEvent(ctx, about, note) })
}
