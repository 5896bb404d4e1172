package main

import (
	"context"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// balancerTrial checks, on the host, that HAProxy works with the changed files.
type balancerTrial struct {
	env func(name string) (value string, is bool)
	// out receives the result of the task.
	out  io.Writer
	host loadbalancer.Host
	// address is the address on which HAProxy listens.
	address string
	// within limits how long HAProxy may take; zero means no trial.
	within time.Duration
	// manifest is true if the task may replace HAProxy's manifest.
	manifest bool
}

// confirm returns the [loadbalancer.Host.Confirm] for the change, or nil if the task must not undo the change.
func (t balancerTrial) confirm(ctx context.Context) func(context.Context, journal.LoadBalancerOnNode) error {
	if t.within == 0 {
		return nil
	}
	if t.manifest {
		return t.awaitNewPod
	}
	if _, err := os.Stat(t.host.ManifestPath()); err != nil {
		return nil // no HAProxy runs yet
	}
	if t.awaitOwnPod(ctx, min(answerTimeout, t.within), func(*corev1.Pod) error { return nil }) != nil {
		return nil // HAProxy did not work before the change either, so the former configuration is not restored
	}
	return t.awaitConfirmation
}

// answerTimeout is how long to wait for an answer through HAProxy before the change. Without that answer, the task does
// not undo the change. In test/node, a HAProxy that the kubelet restarted with a former configuration answered within
// 15 s.
const answerTimeout = time.Minute

// awaitConfirmation reports the change, and waits until EKCO has confirmed it. It reads the confirmation from an API
// server through the HAProxy of this host.
func (t balancerTrial) awaitConfirmation(ctx context.Context, on journal.LoadBalancerOnNode) error {
	if err := hosttask.SayAndWait(t.out, on); err != nil {
		return err
	}
	return t.awaitOwnPod(ctx, t.within, func(pod *corev1.Pod) error {
		return hosttask.CheckConfirmed(pod.Annotations)
	})
}

// awaitNewPod waits until HAProxy's pod runs with the new manifest. It reads the pod from an API server through the
// HAProxy of this host.
func (t balancerTrial) awaitNewPod(ctx context.Context, on journal.LoadBalancerOnNode) error {
	if !on.Manifest {
		return nil
	}
	manifest, err := os.Stat(t.host.ManifestPath())
	if err != nil {
		return err
	}
	return t.awaitHAProxy(ctx, t.within, func(pod *corev1.Pod) error {
		return loadbalancer.CheckRunning(pod, on, manifest.ModTime())
	})
}

// restartedTimeout is how long to wait until the API server shows the pod of a restarted HAProxy.
const restartedTimeout = 20 * time.Second

// worksFunc returns the [loadbalancer.Host.Works].
func (t balancerTrial) worksFunc(ctx context.Context) func(journal.LoadBalancerOnNode, time.Time) error {
	return func(on journal.LoadBalancerOnNode, since time.Time) error {
		return t.awaitHAProxy(ctx, min(restartedTimeout, t.within), func(pod *corev1.Pod) error { return loadbalancer.CheckStarted(pod, on, since) })
	}
}

// awaitHAProxy waits until fits returns nil for the pod of this host's HAProxy.
func (t balancerTrial) awaitHAProxy(ctx context.Context, within time.Duration, fits func(*corev1.Pod) error) error {
	node, _ := t.env(hosttask.EnvNode)
	return t.awaitPod(ctx, loadbalancer.Namespace, loadbalancer.PodName+"-"+node, within, fits)
}

// awaitOwnPod waits until fits returns nil for the pod of this host task.
func (t balancerTrial) awaitOwnPod(ctx context.Context, within time.Duration, fits func(*corev1.Pod) error) error {
	namespace, _ := t.env(hosttask.EnvNamespace)
	name, _ := t.env(hosttask.EnvPod)
	return t.awaitPod(ctx, namespace, name, within, fits)
}

// awaitPod waits until fits returns nil for a pod, which it reads from an API server through HAProxy; see
// [kubeconfig.File.AwaitPod].
func (t balancerTrial) awaitPod(ctx context.Context, namespace, name string, within time.Duration, fits func(*corev1.Pod) error) error {
	file, err := kubeconfig.In(t.host.Etc, "kubelet.conf")
	if err != nil {
		return err
	}
	return file.AwaitPod(ctx, t.address, namespace, name, within, fits)
}
