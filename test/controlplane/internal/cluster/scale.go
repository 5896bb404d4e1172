package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ScaleNamespace holds the pods that Scale creates.
const ScaleNamespace = "scale"

const (
	scalePrefix = "scale-" // begins the names of nodes

	// creators is how many objects are created at a time. More would only wait in
	// the API server.
	creators = 64
	// reportEvery is the time between progress lines.
	reportEvery = 2 * time.Second
)

// ScaleOptions say how much Scale creates.
type ScaleOptions struct {
	Nodes       int           // workers scale-00001 and up
	PodsPerNode int           // in ScaleNamespace, bound without the scheduler
	Grace       time.Duration // termination grace period of the pods, whole seconds
	Timeout     time.Duration // of the whole call
	Progress    io.Writer     // a line every 2 s
}

// Scale creates workers and pods on them, and returns when all are ready and
// running. It keeps existing objects, so it can be called again with larger
// numbers.
func Scale(ctx context.Context, client kubernetes.Interface, o ScaleOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done after %s", o.Timeout))
	defer cancel()
	counter, err := watchCounts(ctx, client)
	if err != nil {
		return err
	}
	defer counter.stop()

	begin := time.Now()
	report := func(what string) {
		nodes, pods := counter.counts()
		_, _ = fmt.Fprintf(o.Progress, "%6.1fs  %s: %d/%d nodes ready, %d/%d pods running\n",
			time.Since(begin).Seconds(), what, nodes, o.Nodes, pods, o.Nodes*o.PodsPerNode)
	}
	phases := []struct {
		what string
		do   func(context.Context) error
	}{
		{"creating nodes", func(ctx context.Context) error { return createNodes(ctx, client, o.Nodes) }},
		{"waiting for nodes", func(ctx context.Context) error { return counter.await(ctx, o.Nodes, 0) }},
		{"creating pods", func(ctx context.Context) error { return createPods(ctx, client, counter, o) }},
		{"waiting for pods", func(ctx context.Context) error { return awaitPods(ctx, client, counter, o) }},
	}
	for _, phase := range phases {
		err := reporting(func() { report(phase.what) }, func() error { return phase.do(ctx) })
		if err != nil {
			return fmt.Errorf("%s: %w", phase.what, err)
		}
	}
	report("done")
	return nil
}

// reporting calls report every reportEvery until do returns.
func reporting(report func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			report()
		}
	}
}

func scaleNode(i int) string { return fmt.Sprintf("%s%05d", scalePrefix, i+1) }

func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	first, err := freeAddress(ctx, client)
	if err != nil {
		return err
	}
	return each(ctx, count, func(ctx context.Context, i int) error {
		node := newNode(scaleNode(i), Worker, address(first+i))
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return unlessExists(err)
	})
}

// createPods creates the missing pods.
func createPods(ctx context.Context, client kubernetes.Interface, have *counter, o ScaleOptions) error {
	if o.PodsPerNode == 0 {
		return nil
	}
	if err := ensureNamespace(ctx, client, ScaleNamespace); err != nil {
		return err
	}
	err := Await(ctx, o.Timeout, func(ctx context.Context) error {
		return HasDefaultAccount(ctx, client, ScaleNamespace)
	})
	if err != nil {
		return err
	}
	var missing []*corev1.Pod
	for i := range o.Nodes * o.PodsPerNode {
		pod := scalePod(scaleNode(i/o.PodsPerNode), i%o.PodsPerNode, o.Grace)
		if !have.hasPod(pod.Name) {
			missing = append(missing, pod)
		}
	}
	return each(ctx, len(missing), func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Pods(ScaleNamespace).Create(ctx, missing[i], metav1.CreateOptions{})
		return unlessExists(err)
	})
}

// awaitPods waits until all pods run. It recreates evicted pods, because nodes
// may look lost on an overloaded machine.
func awaitPods(ctx context.Context, client kubernetes.Interface, have *counter, o ScaleOptions) error {
	const recreateInterval = 20 * time.Second
	for {
		attempt, cancel := context.WithTimeout(ctx, recreateInterval)
		err := have.await(attempt, o.Nodes, o.Nodes*o.PodsPerNode)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := createPods(ctx, client, have, o); err != nil {
			return err
		}
	}
}

func scalePod(node string, i int, grace time.Duration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s-%d", node, i),
			Labels: map[string]string{"app": "scale"},
		},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(grace.Seconds())),
			Containers:                    []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
		},
	}
}

// each calls do for 0 to count-1, creators at a time, until one fails.
func each(ctx context.Context, count int, do func(context.Context, int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return do(groupCtx, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
