package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// Crowded returns the reason why replacing one pod would not disconnect all clients, or "".
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

// deployment is the part of a Deployment that EKCO reads.
type deployment struct {
	object
	Spec struct {
		Replicas *int `json:"replicas"`
		Template struct {
			Spec struct {
				Volumes []struct {
					Claim struct {
						Name string `json:"claimName"`
					} `json:"persistentVolumeClaim"`
				} `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// usesClaim reports whether the Deployment's pods use the claim.
func (d deployment) usesClaim(claim string) bool {
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.Claim.Name == claim {
			return true
		}
	}
	return false
}

// Single implements [API].
func (c *Client) Single(ctx context.Context) (Single, error) {
	read, exists, err := getIfExists[deployment](ctx, c, DeploymentRef(c.namespace))
	if err != nil {
		return Single{}, err
	}
	single := Single{Deployment: read.Metadata.UID, Mounts: read.usesClaim(SingleClaimRef(c.namespace).Name)}
	if exists {
		single.Replicas = replicasOrDefault(read.Spec.Replicas)
	}
	ref := namedPodRef(c.namespace, "")
	raw, err := c.objects.ListObjects(ctx, ref, Label, singleName)
	if err != nil {
		return Single{}, err
	}
	for _, one := range raw {
		read, err := decode[pod](ref, one, nil)
		if err != nil {
			return Single{}, err
		}
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
	read, exists, err := getIfExists[pod](ctx, c, namedPodRef(c.namespace, name))
	if err != nil || !exists || read.Metadata.UID != uid {
		return SinglePod{}, false, err
	}
	return read.toSinglePod(), true, nil
}

// deploymentOf returns the UID of the Deployment that owns the pod's ReplicaSet. It returns "" if there is no such
// Deployment or ReplicaSet.
func (c *Client) deploymentOf(ctx context.Context, p pod) (string, error) {
	by := p.Metadata.controller()
	if by.Kind != "ReplicaSet" {
		return "", nil
	}
	set, exists, err := getIfExists[object](ctx, c, ReplicaSetRef(c.namespace, by.Name))
	if err != nil || !exists || set.Metadata.UID != by.UID {
		return "", err
	}
	return set.Metadata.controller().UID, nil
}

func (p pod) toSinglePod() SinglePod {
	return SinglePod{
		Name: p.Metadata.Name, UID: p.Metadata.UID, Node: p.Spec.NodeName, Controller: p.Metadata.controller().UID,
		Address: address(p.Status.PodIP), State: p.state(), Unready: p.unready(), OnHost: p.onHost(), labels: p.Metadata.Labels, tolerations: p.Spec.Tolerations,
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
	read, exists, err := getIfExists[object](ctx, c, SingleClaimRef(c.namespace))
	return Claim{UID: read.Metadata.UID, Ends: read.Metadata.DeletionTimestamp != ""}, exists, err
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
	node, err := get[node](ctx, c, NodeRef(name))
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
		case "Ready":
			ready = condition.Status == "True"
		case "MemoryPressure", "DiskPressure", "PIDPressure":
			if condition.Status == "True" {
				return NoSuccessor{condition.Type + " " + name, fmt.Sprintf("node %s has %s", name, condition.Type)}, nil
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
	list, err := c.objects.ListObjects(ctx, ref, "", "")
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrForbidden), errors.Is(sentinel, kube.ErrNotFound):
		return NoSuccessor{}, nil
	case err != nil:
		return NoSuccessor{}, err
	}
	for _, raw := range list {
		quota, err := decode[quota](ref, raw, nil)
		if err != nil {
			return NoSuccessor{}, err
		}
		if over := quota.exceeded(); over != "" {
			return NoSuccessor{"quota " + quota.Metadata.Name, fmt.Sprintf("quota %s of namespace %s is exceeded: %s", quota.Metadata.Name, c.namespace, over)}, nil
		}
	}
	return NoSuccessor{}, nil
}

// node is the part of a Node that EKCO reads.
type node struct {
	object
	Spec struct {
		Unschedulable bool           `json:"unschedulable"`
		Taints        []corev1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
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
