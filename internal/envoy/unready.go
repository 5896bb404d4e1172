package envoy

import (
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Label and App select Envoy's pods.
const (
	Label = "app"
	App   = "envoy"
)

// The containers of an Envoy pod.
const (
	proxy   = "envoy"
	manager = "shutdown-manager"
)

// Unready reports whether the pod hangs: it runs, is not being deleted, its shutdown-manager is ready, its proxy is
// not, and the kubelet reports that not all containers are ready. since is the earliest time at which all of that can
// have begun, by the kubelet's clock, and not before the last start of either container. Unready ignores static pods:
// they are not Contour's, whatever their name is, and come back after a deletion.
func Unready(pod kube.Pod) (since time.Time, unready bool) {
	status := pod.Status
	hangs, _ := status.Container(proxy)
	works, _ := status.Container(manager)
	switch {
	case pod.Controller.Kind == "Node":
		return time.Time{}, false
	case status.Phase != "Running", !pod.DeletionTimestamp.IsZero(), status.NotReadySince.IsZero():
		return time.Time{}, false
	case hangs.Ready, hangs.RunningSince.IsZero(), !works.Ready, works.RunningSince.IsZero():
		return time.Time{}, false
	}
	since = status.NotReadySince
	for _, started := range []time.Time{hangs.RunningSince, works.RunningSince} {
		if started.After(since) {
			since = started
		}
	}
	return since, true
}

// Of returns the record of a pod, whether it hangs or not.
func Of(pod kube.Pod, since time.Time) journal.EnvoyPod {
	return journal.EnvoyPod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Node: pod.Node, Since: since}
}
