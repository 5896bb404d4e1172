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

// balancerTrial checks, on the host, that HAProxy works with the files that the task changed.
type balancerTrial struct {
	env func(name string) (value string, is bool)
	// out is where the task's result is reported.
	out  io.Writer
	host loadbalancer.Host
	// address is where HAProxy listens.
	address string
	// within is how long HAProxy may take; zero for no trial.
	within time.Duration
	// manifest is set if the task may replace HAProxy's manifest.
	manifest bool
}

// confirm returns the [loadbalancer.Host.Confirm] for the change; nil for none.
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
		return nil // HAProxy did not work before the change, perhaps because of the former configuration: that is not restored
	}
	return t.awaitConfirmation
}

// answerTimeout is how long to wait for an answer through HAProxy before the change; without one, the change is not undone.
// A HAProxy that the kubelet restarts for a former configuration answered again within 15 s in test/node.
const answerTimeout = time.Minute

// awaitConfirmation reports the change, and waits until an API server says, through the HAProxy of this host, that EKCO has
// confirmed it.
func (t balancerTrial) awaitConfirmation(ctx context.Context, on journal.LoadBalancerOnNode) error {
	if err := hosttask.SayAndWait(t.out, on); err != nil {
		return err
	}
	return t.awaitOwnPod(ctx, t.within, func(pod *corev1.Pod) error {
		return hosttask.CheckConfirmed(pod.Annotations)
	})
}

// awaitNewPod waits until an API server says, through the HAProxy of this host, that HAProxy's pod runs with the new manifest.
func (t balancerTrial) awaitNewPod(ctx context.Context, on journal.LoadBalancerOnNode) error {
	if !on.Manifest {
		return nil
	}
	manifest, err := os.Stat(t.host.ManifestPath())
	if err != nil {
		return err
	}
	return t.awaitHAProxy(ctx, t.within, func(pod *corev1.Pod) error {
		return loadbalancer.Runs(pod, on, manifest.ModTime())
	})
}

// restartedTimeout is how long to wait until the API server has the pod of a HAProxy that was restarted.
const restartedTimeout = 20 * time.Second

// works returns the [loadbalancer.Host.Works].
func (t balancerTrial) works(ctx context.Context) func(journal.LoadBalancerOnNode, time.Time) error {
	return func(on journal.LoadBalancerOnNode, since time.Time) error {
		return t.awaitHAProxy(ctx, min(restartedTimeout, t.within), func(pod *corev1.Pod) error { return loadbalancer.Started(pod, on, since) })
	}
}

// awaitHAProxy waits until the pod of this host's HAProxy fits.
func (t balancerTrial) awaitHAProxy(ctx context.Context, within time.Duration, fits func(*corev1.Pod) error) error {
	node, _ := t.env(hosttask.EnvNode)
	return t.await(ctx, loadbalancer.Namespace, loadbalancer.PodName+"-"+node, within, fits)
}

// awaitOwnPod waits until the pod of this host task fits.
func (t balancerTrial) awaitOwnPod(ctx context.Context, within time.Duration, fits func(*corev1.Pod) error) error {
	namespace, _ := t.env(hosttask.EnvNamespace)
	name, _ := t.env(hosttask.EnvPod)
	return t.await(ctx, namespace, name, within, fits)
}

// await waits until a pod fits, as an API server says through HAProxy; see [kubeconfig.File.AwaitPod].
func (t balancerTrial) await(ctx context.Context, namespace, name string, within time.Duration, fits func(*corev1.Pod) error) error {
	file, err := kubeconfig.In(t.host.Etc, "kubelet.conf")
	if err != nil {
		return err
	}
	return file.AwaitPod(ctx, t.address, namespace, name, within, fits)
}
