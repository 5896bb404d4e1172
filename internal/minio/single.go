package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Single is the state of standalone MinIO.
type Single struct {
	// Deployment is the UID of its Deployment, or empty. Replicas is the number of replicas in the Deployment's
	// spec.
	Deployment string
	Replicas   int
	// Mounts reports whether the Deployment's pods use the claim of kURL's standalone MinIO.
	Mounts bool
	// Pods are the pods with the label of standalone MinIO that have not ended, sorted by name.
	Pods []SinglePod
}

// SinglePod is a pod with the label of standalone MinIO.
type SinglePod struct {
	Name, UID, Node string
	// Controller is the UID of the pod's controller, or empty. If the controller is a ReplicaSet of a Deployment,
	// Deployment is the UID of that Deployment.
	Controller, Deployment string
	// Address is HOST:PORT. It is empty until the pod has an IP address.
	Address string
	State   journal.MinioPodState
	// Unready is the reason why the pod is not ready, or "".
	Unready string
	// OnHost is set if clients can reach the pod at an address of its node (hostNetwork or hostPort).
	OnHost bool
	labels map[string]string

	tolerations []corev1.Toleration
}

// Serves reports whether the pod runs, is ready and has an address.
func (p SinglePod) Serves() bool {
	return p.State == journal.MinioPodRuns && p.Unready == "" && p.Address != ""
}

// Own returns the pods that belong to the Deployment.
func (s Single) Own() []SinglePod { return s.podsWhere(true) }

// Foreign returns the pods that have the label but do not belong to the Deployment. The Service sends clients also to
// these pods.
func (s Single) Foreign() []SinglePod { return s.podsWhere(false) }

func (s Single) podsWhere(own bool) (pods []SinglePod) {
	for _, pod := range s.Pods {
		if (s.Deployment != "" && pod.Deployment == s.Deployment) == own {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Serving returns a pod of the Deployment that serves clients. It returns false if there is no such pod, or if the
// Deployment is scaled to 0.
func (s Single) Serving() (SinglePod, bool) {
	if s.Replicas == 0 {
		return SinglePod{}, false
	}
	for _, pod := range s.Own() {
		if pod.Serves() {
			return pod, true
		}
	}
	return SinglePod{}, false
}

// Lacks returns the reason why no pod serves clients.
func (s Single) Lacks() string {
	own := s.Own()
	switch {
	case s.Deployment == "":
		return "there is no Deployment minio"
	case s.Replicas == 0:
		return "Deployment minio is scaled to 0"
	case len(own) == 0:
		return "Deployment minio has no pod"
	}
	return fmt.Sprintf("pod %s of standalone MinIO is not ready: %s", own[0].Name, cmp.Or(own[0].Unready, "it has no address"))
}

// Crowded returns the reason why clients would stay connected to another pod if one pod is replaced, or "".
func (s Single) Crowded() string {
	if s.Deployment != "" && s.Replicas > 1 {
		return fmt.Sprintf("Deployment minio asks for %d pods, which would write to the same volume at the same time; scale it to 1", s.Replicas)
	}
	var names []string
	for _, pod := range s.Foreign() {
		names = append(names, pod.Name)
	}
	if len(names) > 0 {
		return fmt.Sprintf("%s has the label app=minio but does not belong to Deployment minio, so clients write to it, too; delete it, or remove the label", strings.Join(names, ", "))
	}
	return ""
}

// usesClaim reports whether the Deployment's pods use the claim.
func usesClaim(d appsv1.Deployment, claim string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// Single implements [API].
func (c *Client) Single(ctx context.Context) (Single, error) {
	read, exists, err := kube.Find[appsv1.Deployment](ctx, c.objects, DeploymentRef(c.namespace))
	if err != nil {
		return Single{}, err
	}
	single := Single{Deployment: string(read.UID), Mounts: usesClaim(read, SingleClaimRef(c.namespace).Name)}
	if exists {
		single.Replicas = replicasOrDefault(read.Spec.Replicas)
	}
	pods, err := kube.List[pod](ctx, c.objects, namedPodRef(c.namespace, ""), Label, singleName)
	if err != nil {
		return Single{}, err
	}
	for _, read := range pods {
		if read.state() == journal.MinioPodEnded {
			continue // evicted, for example: no client is connected to it
		}
		pod := read.toSinglePod()
		if pod.Deployment, err = c.deploymentOf(ctx, read); err != nil {
			return Single{}, err
		}
		single.Pods = append(single.Pods, pod)
	}
	slices.SortFunc(single.Pods, func(a, b SinglePod) int { return cmp.Compare(a.Name, b.Name) })
	return single, nil
}

// SinglePod implements [API].
func (c *Client) SinglePod(ctx context.Context, name, uid string) (SinglePod, bool, error) {
	read, exists, err := kube.Find[pod](ctx, c.objects, namedPodRef(c.namespace, name))
	if err != nil || !exists || string(read.UID) != uid {
		return SinglePod{}, false, err
	}
	return read.toSinglePod(), true, nil
}

// deploymentOf returns the UID of the Deployment that owns the pod's ReplicaSet. It returns "" if there is no such
// Deployment or ReplicaSet.
func (c *Client) deploymentOf(ctx context.Context, p pod) (string, error) {
	by := controller(&p)
	if by.Kind != "ReplicaSet" {
		return "", nil
	}
	set, exists, err := kube.Find[metav1.PartialObjectMetadata](ctx, c.objects, ReplicaSetRef(c.namespace, by.Name))
	if err != nil || !exists || set.UID != by.UID {
		return "", err
	}
	return string(controller(&set).UID), nil
}

// controller returns the controller of the object, or an empty reference.
func controller(of metav1.Object) metav1.OwnerReference {
	if by := metav1.GetControllerOfNoCopy(of); by != nil {
		return *by
	}
	return metav1.OwnerReference{}
}

func (p pod) toSinglePod() SinglePod {
	return SinglePod{
		Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName, Controller: string(controller(&p).UID),
		Address: address(p.Status.PodIP), State: p.state(), Unready: kube.PodProblem(&p.Pod), OnHost: p.onHost(), labels: p.Labels, tolerations: p.Spec.Tolerations,
	}
}

// Targets implements [API].
func (c *Client) Targets(ctx context.Context) ([]string, error) {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var healthy, others []string
	for _, pod := range seen.pods {
		if !pod.runs() {
			continue
		}
		answer, err := c.servers.Health(ctx, pod.Status.PodIP, Now)
		if err == nil && answer.Yes {
			healthy = append(healthy, address(pod.Status.PodIP))
		} else {
			others = append(others, address(pod.Status.PodIP))
		}
	}
	if len(healthy) == 0 {
		return nil, errors.New("no replica of MinIO reports that it is healthy, so EKCO copies nothing to it")
	}
	return append(healthy, others...), nil
}

// EndSinglePod implements [API].
func (c *Client) EndSinglePod(ctx context.Context, pod, uid string, grace time.Duration) error {
	if err := c.objects.EndObject(ctx, namedPodRef(c.namespace, pod), uid, grace); err != nil {
		return fmt.Errorf("replace pod %s of standalone MinIO: %w", pod, err)
	}
	return nil
}

// DeleteDeployment implements [API].
func (c *Client) DeleteDeployment(ctx context.Context, uid string) error {
	return c.objects.DeleteObject(ctx, DeploymentRef(c.namespace), uid)
}

// SingleClaim implements [API].
func (c *Client) SingleClaim(ctx context.Context) (Claim, bool, error) {
	return c.claim(ctx, SingleClaimRef(c.namespace))
}

// DeleteSingleClaim implements [API].
func (c *Client) DeleteSingleClaim(ctx context.Context, uid string) error {
	return c.objects.DeleteObject(ctx, SingleClaimRef(c.namespace), uid)
}

// NoSuccessor is the reason why no other pod could replace a pod.
type NoSuccessor struct {
	// Cause is the cause and its object, such as "cordoned node-1". It is empty if EKCO knows no obstacle.
	Cause string
	// Reason is the text for a message.
	Reason string
}

// Successor implements [API].
func (c *Client) Successor(ctx context.Context, of SinglePod) (NoSuccessor, error) {
	if of.Controller == "" {
		return NoSuccessor{"no controller", fmt.Sprintf("nothing would replace pod %s: it has no controller", of.Name)}, nil
	}
	if no, err := c.nodeLacks(ctx, of); no.Cause != "" || err != nil {
		return no, err
	}
	return c.overQuota(ctx)
}

// nodeLacks returns the reason why a replacement of the pod would not start on the pod's node.
func (c *Client) nodeLacks(ctx context.Context, of SinglePod) (NoSuccessor, error) {
	name := of.Node
	node, err := kube.Get[corev1.Node](ctx, c.objects, NodeRef(name))
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return NoSuccessor{"gone " + name, fmt.Sprintf("node %s is gone", name)}, nil
	case err != nil:
		return NoSuccessor{}, err
	case node.Spec.Unschedulable:
		return NoSuccessor{"cordoned " + name, fmt.Sprintf("node %s is cordoned", name)}, nil
	}
	ready := false
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			ready = condition.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if condition.Status == corev1.ConditionTrue {
				return NoSuccessor{string(condition.Type) + " " + name, fmt.Sprintf("node %s has %s", name, condition.Type)}, nil
			}
		}
	}
	if !ready {
		return NoSuccessor{"not ready " + name, fmt.Sprintf("node %s is not ready", name)}, nil
	}
	if taint := untolerated(node.Spec.Taints, of.tolerations); taint != "" {
		return NoSuccessor{"tainted " + name, fmt.Sprintf("node %s has the taint %s, which Deployment minio does not tolerate", name, taint)}, nil
	}
	return NoSuccessor{}, nil
}

// untolerated returns the first taint that the tolerations do not tolerate, or "".
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) string {
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, &taint, false) }
		if !slices.ContainsFunc(tolerations, tolerates) {
			return taint.ToString()
		}
	}
	return ""
}

// overQuota returns the first quota of the namespace that is already exceeded. Other quotas are no obstacle, because
// the new pod needs only as much as the old pod. By default EKCO has no permission to read quotas. Then it cannot
// detect an exceeded quota: the switch fails, and EKCO switches back.
func (c *Client) overQuota(ctx context.Context) (NoSuccessor, error) {
	ref := kube.Ref{Version: "v1", Resource: "resourcequotas", Namespace: c.namespace}
	quotas, err := kube.List[corev1.ResourceQuota](ctx, c.objects, ref, "", "")
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrForbidden), errors.Is(sentinel, kube.ErrNotFound):
		return NoSuccessor{}, nil
	case err != nil:
		return NoSuccessor{}, err
	}
	for _, quota := range quotas {
		if over := exceeded(quota.Status); over != "" {
			return NoSuccessor{"quota " + quota.Name, fmt.Sprintf("quota %s of namespace %s is exceeded: %s", quota.Name, c.namespace, over)}, nil
		}
	}
	return NoSuccessor{}, nil
}

// exceeded returns a text about the first resource that exceeds the quota, or "".
func exceeded(quota corev1.ResourceQuotaStatus) string {
	for _, name := range slices.Sorted(maps.Keys(quota.Hard)) {
		hard, used := quota.Hard[name], quota.Used[name]
		if used.Cmp(hard) > 0 {
			return fmt.Sprintf("%s of %s %s", used.String(), hard.String(), name)
		}
	}
	return ""
}

// Credentials implements [API].
func (c *Client) Credentials(ctx context.Context) (Credentials, error) {
	ref := SecretRef(c.namespace)
	raw, err := c.objects.ReadObject(ctx, ref)
	if err != nil {
		return Credentials{}, err
	}
	var read struct {
		Data map[string][]byte `json:"data"`
	}
	// The cause is left out: it may quote a secret.
	if json.Unmarshal(raw, &read) != nil || len(read.Data[accessKey]) == 0 || len(read.Data[secretKey]) == 0 {
		return Credentials{}, fmt.Errorf("read %s: want both %s and %s, as kURL sets them", ref, accessKey, secretKey)
	}
	return Credentials{AccessKey: string(read.Data[accessKey]), SecretKey: string(read.Data[secretKey])}, nil
}

// The keys of the Secret.
const (
	accessKey = "MINIO_ACCESS_KEY"
	secretKey = "MINIO_SECRET_KEY"
)
