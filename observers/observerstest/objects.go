package observerstest

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Node returns a ready worker.
func Node(name, uid string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid),
			CreationTimestamp: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: name},
		}},
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

// Unreachable returns a change that adds the taint of a lost node.
func Unreachable(since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		added := metav1.NewTime(since)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added,
		})
	}
}

// Heartbeat changes only fields that are no facts of a node.
func Heartbeat(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
}

// Pod returns a running pod; name is "namespace/name".
func Pod(name, uid, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	namespace, name, _ := strings.Cut(name, "/")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// Terminating returns a change that marks the pod as terminating. Its deletion was requested at the given time, with a
// grace period of 30 s.
func Terminating(asked time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		grace := int64(30)
		at := metav1.NewTime(asked.Add(30 * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
}

// KnownNode returns a node as the journal has it.
func KnownNode(name, uid string) kube.Node { return kube.NodeOf(Node(name, uid)) }
