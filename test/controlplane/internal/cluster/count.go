package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// counter counts the nodes and pods of Scale that are ready and running, from
// watches that keep little more than their names.
type counter struct {
	factory     informers.SharedInformerFactory
	nodes, pods cache.Store
	cancel      context.CancelFunc
}

// watchCounts returns when the watches have caught up. Call stop to end them.
func watchCounts(ctx context.Context, client kubernetes.Interface) (*counter, error) {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(strip))
	nodes := factory.Core().V1().Nodes().Informer()
	pods := factory.Core().V1().Pods().Informer()
	c := &counter{factory: factory, nodes: nodes.GetStore(), pods: pods.GetStore(), cancel: cancel}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		c.stop()
		return nil, fmt.Errorf("cannot watch nodes and pods: %w", context.Cause(ctx))
	}
	return c, nil
}

func (c *counter) stop() {
	c.cancel()
	c.factory.Shutdown()
}

// strip removes fields that the counter does not use.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: identity(o.ObjectMeta), Status: corev1.NodeStatus{Conditions: o.Status.Conditions}}, nil
	case *corev1.Pod:
		return &corev1.Pod{ObjectMeta: identity(o.ObjectMeta), Status: corev1.PodStatus{Phase: o.Status.Phase}}, nil
	default:
		return object, nil
	}
}

func identity(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

func (c *counter) counts() (nodes, pods int) {
	for _, object := range c.nodes.List() {
		node := object.(*corev1.Node)
		if strings.HasPrefix(node.Name, scalePrefix) && readyStatus(node) == corev1.ConditionTrue {
			nodes++
		}
	}
	for _, object := range c.pods.List() {
		pod := object.(*corev1.Pod)
		if pod.Namespace == ScaleNamespace && pod.Status.Phase == corev1.PodRunning {
			pods++
		}
	}
	return nodes, pods
}

func (c *counter) hasPod(name string) bool {
	_, found, err := c.pods.GetByKey(ScaleNamespace + "/" + name)
	return found && err == nil
}

// await waits until at least this many nodes are ready and pods run.
func (c *counter) await(ctx context.Context, nodes, pods int) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		haveNodes, havePods := c.counts()
		if haveNodes >= nodes && havePods >= pods {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx),
				fmt.Errorf("%d of %d nodes are ready and %d of %d pods run", haveNodes, nodes, havePods, pods))
		case <-tick.C:
		}
	}
}
