package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/replicatedhq/ekco/test/kurl"
)

// Ceph is the cluster to change. Any goroutine may call it; see the Cluster of test/ceph.
type Ceph interface {
	// Try runs a ceph command.
	Try(args ...string) (string, error)
	// AddHost creates the OSDs of a host that has disks but no OSDs.
	AddHost(host string) ([]int, error)
	AddMon(name string) error
	AddMgr(name string) error
}

// deployments is the API resource of the daemons' Deployments.
var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// retryDelay is the pause after a failure.
const retryDelay = time.Second

// watched lists the kinds of objects that the operator watches.
var watched = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	rookResource("cephclusters"), rookResource("cephblockpools"), rookResource("cephfilesystems"), rookResource("cephobjectstores"),
}

func rookResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: plural}
}

// operator is the running substitute.
type operator struct {
	tb      testing.TB
	client  dynamic.Interface
	ceph    Ceph
	changed chan struct{}
	stores  map[schema.GroupVersionResource]cache.Store
	// mons and mgrs are the numbers of monitors and managers.
	mons, mgrs int
}

// Start starts the operator for an API server that has Rook's definitions, and for a Ceph with one monitor and one
// manager. If ceph is nil, the operator changes nothing in Ceph. It ends with the test.
func Start(tb testing.TB, config *rest.Config, ceph Ceph) {
	tb.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	o := &operator{
		tb: tb, client: client, ceph: ceph, changed: make(chan struct{}, 1),
		stores: map[schema.GroupVersionResource]cache.Store{}, mons: 1, mgrs: 1,
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, resource := range watched {
		informer := factory.ForResource(resource).Informer()
		if _, err := informer.AddEventHandler(o.trigger()); err != nil {
			tb.Fatal(err)
		}
		o.stores[resource] = informer.GetStore()
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	over := make(chan struct{})
	go func() {
		defer close(over)
		o.run(ctx)
	}()
	tb.Cleanup(func() {
		cancel()
		<-over
		factory.Shutdown()
	})
}

// trigger returns a handler that triggers a new run after every change.
func (o *operator) trigger() cache.ResourceEventHandler {
	changed := func() {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}
}

// run reconciles Ceph with the custom resources after each change, and again after a failure.
func (o *operator) run(ctx context.Context) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		case <-retry.C:
		}
		if err := o.reconcile(ctx); err != nil && ctx.Err() == nil {
			o.tb.Logf("the stand-in for Rook's operator: %v", err)
			retry.Reset(retryDelay)
		}
	}
}

func (o *operator) reconcile(ctx context.Context) error {
	found, err := o.read()
	if err != nil || found.cluster == nil {
		return err
	}
	placed := o.placeMDS(ctx, found)
	if o.ceph == nil {
		return placed
	}
	return errors.Join(placed, o.addDaemons(*found.cluster), o.addHosts(ctx, found), o.sizePools(found.pools()))
}

// addHosts creates the OSDs of the nodes that may store data.
func (o *operator) addHosts(ctx context.Context, found resources) error {
	var failures []error
	for _, host := range found.hosts() {
		ids, err := o.ceph.AddHost(host)
		failures = append(failures, err)
		for _, id := range ids {
			failures = append(failures, o.create(ctx, kurl.OSDDeployment(host, id)))
		}
	}
	return errors.Join(failures...)
}

// create creates the Deployment of an OSD.
func (o *operator) create(ctx context.Context, manifest any) error {
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return err
	}
	_, err = o.client.Resource(deployments).Namespace(kurl.RookNamespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// addDaemons adds monitors and managers up to the requested numbers.
func (o *operator) addDaemons(cluster cephCluster) error {
	for ; o.mons < cluster.Spec.Mon.Count; o.mons++ {
		if err := o.ceph.AddMon(fmt.Sprintf("m%d", o.mons)); err != nil {
			return err
		}
	}
	for ; o.mgrs < cluster.Spec.Mgr.Count; o.mgrs++ {
		if err := o.ceph.AddMgr(fmt.Sprintf("y%d", o.mgrs)); err != nil {
			return err
		}
	}
	return nil
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
