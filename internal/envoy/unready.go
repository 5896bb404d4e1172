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

// Unready reports whether the pod hangs: it runs, nobody asked it to end, its
// shutdown-manager is ready and its proxy is not, and the kubelet says that not all
// containers are ready. since is from when on all of that can be so, by the kubelet's
// clock: a container that was started anew counts anew. A pod that a kubelet shows of its
// own is none of Contour's, whatever it is called, and comes back when it is deleted.
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

// Of returns what is recorded of the pod. It says nothing of whether that hangs.
func Of(pod kube.Pod, since time.Time) journal.EnvoyPod {
	return journal.EnvoyPod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Node: pod.Node, Since: since}
}
