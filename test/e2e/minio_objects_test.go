package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// minioObjects caches the API server's objects for [minioKubelet].
type minioObjects struct {
	// changed receives a value after a change.
	changed                                            chan struct{}
	allPods, allClaims, allVolumes, nodes, allServices cache.Store
}

// watchMinioObjects watches them until the test ends.
func watchMinioObjects(t *testing.T, client kubernetes.Interface) *minioObjects {
	t.Helper()
	o := &minioObjects{changed: make(chan struct{}, 1)}
	here := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(minioNamespace))
	anywhere := informers.NewSharedInformerFactory(client, 0)
	for store, informer := range map[*cache.Store]cache.SharedIndexInformer{
		&o.allPods: here.Core().V1().Pods().Informer(), &o.allClaims: here.Core().V1().PersistentVolumeClaims().Informer(),
		&o.allServices: here.Core().V1().Services().Informer(), &o.allVolumes: anywhere.Core().V1().PersistentVolumes().Informer(),
		&o.nodes: anywhere.Core().V1().Nodes().Informer(),
	} {
		*store = informer.GetStore()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { o.wake() }, UpdateFunc: func(any, any) { o.wake() }, DeleteFunc: func(any) { o.wake() },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, factory := range []informers.SharedInformerFactory{here, anywhere} {
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		t.Cleanup(factory.Shutdown)
	}
	return o
}

// wake wakes the loop of [minioKubelet].
func (o *minioObjects) wake() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// objectsOf returns the objects of a store. Do not change them.
func objectsOf[O any](store cache.Store) (all []O) {
	for _, object := range store.List() {
		all = append(all, object.(O))
	}
	return all
}

func (o *minioObjects) pods() []*corev1.Pod { return objectsOf[*corev1.Pod](o.allPods) }

func (o *minioObjects) claims() []*corev1.PersistentVolumeClaim {
	return objectsOf[*corev1.PersistentVolumeClaim](o.allClaims)
}

func (o *minioObjects) volumes() []*corev1.PersistentVolume {
	return objectsOf[*corev1.PersistentVolume](o.allVolumes)
}

// isUp reports whether a node has its simulated kubelet.
func (o *minioObjects) isUp(node string) bool {
	object, exists, _ := o.nodes.GetByKey(node)
	return exists && object.(*corev1.Node).Labels["sim/kubelet"] == "up"
}

// selects reports whether Service minio selects a pod.
func (o *minioObjects) selects(pod *corev1.Pod) bool {
	object, exists, _ := o.allServices.GetByKey(minioNamespace + "/minio")
	if !exists {
		return false
	}
	selector := object.(*corev1.Service).Spec.Selector
	for name, value := range selector {
		if pod.Labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}
