package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Single is the single MinIO as it is.
type Single struct {
	// Deployment is the UID of its Deployment, empty if there is none.
	Deployment string
	// Pods are those with its label, by name.
	Pods []SinglePod
}

// SinglePod is a pod of the single MinIO.
type SinglePod struct {
	Name, UID, Node string
	// Controller is the UID of what made the pod, empty if nothing did.
	Controller string
	// Address is HOST:PORT, empty as long as it has none.
	Address string
	State   journal.MinioPodState
	// Unready says why it is not ready, "" if it is.
	Unready string
}

// Serves reports whether the pod runs, is ready and can be reached.
func (p SinglePod) Serves() bool {
	return p.State == journal.MinioPodRuns && p.Unready == "" && p.Address != ""
}

// Serving returns a pod that does.
func (s Single) Serving() (SinglePod, bool) {
	for _, pod := range s.Pods {
		if pod.Serves() {
			return pod, true
		}
	}
	return SinglePod{}, false
}

// Lacks says for people why no pod serves.
func (s Single) Lacks() string {
	switch {
	case s.Deployment == "":
		return "there is no Deployment minio"
	case len(s.Pods) == 0:
		return "Deployment minio has no pod"
	}
	pod := s.Pods[0]
	return fmt.Sprintf("pod %s of the single MinIO is not ready: %s", pod.Name, cmp.Or(pod.Unready, "it has no address"))
}

// Single implements [API].
func (c *Client) Single(ctx context.Context) (Single, error) {
	var single Single
	var err error
	if single.Deployment, err = c.deployment(ctx); err != nil {
		return Single{}, err
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
		single.Pods = append(single.Pods, read.single())
	}
	slices.SortFunc(single.Pods, func(a, b SinglePod) int { return cmp.Compare(a.Name, b.Name) })
	return single, nil
}

func (p pod) single() SinglePod {
	one := SinglePod{
		Name: p.Metadata.Name, UID: p.Metadata.UID, Node: p.Spec.NodeName,
		Address: address(p.Status.PodIP), State: p.state(), Unready: p.unready(),
	}
	for _, owner := range p.Metadata.OwnerReferences {
		if owner.Controller {
			one.Controller = owner.UID
		}
	}
	return one
}

// Targets implements [API].
func (c *Client) Targets(ctx context.Context) ([]string, error) {
	seen, err := c.look(ctx)
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
		return nil, errors.New("no replica of MinIO says that it is healthy, so that nothing can be copied to it")
	}
	return append(healthy, others...), nil
}

// EndSinglePod implements [API].
func (c *Client) EndSinglePod(ctx context.Context, pod, uid string, grace time.Duration) error {
	if err := c.objects.EndObject(ctx, namedPodRef(c.namespace, pod), uid, grace); err != nil {
		return fmt.Errorf("replace pod %s of the single MinIO: %w", pod, err)
	}
	return nil
}

// DeleteDeployment implements [API].
func (c *Client) DeleteDeployment(ctx context.Context, uid string) error {
	return c.objects.DeleteObject(ctx, DeploymentRef(c.namespace), uid)
}

// SingleClaim implements [API].
func (c *Client) SingleClaim(ctx context.Context) (Claim, bool, error) {
	read, exists, err := found[object](ctx, c, SingleClaimRef(c.namespace))
	return Claim{UID: read.Metadata.UID, Ends: read.Metadata.DeletionTimestamp != ""}, exists, err
}

// DeleteSingleClaim implements [API].
func (c *Client) DeleteSingleClaim(ctx context.Context, uid string) error {
	return c.objects.DeleteObject(ctx, SingleClaimRef(c.namespace), uid)
}

// Successor implements [API].
func (c *Client) Successor(ctx context.Context, of SinglePod) (string, error) {
	if of.Controller == "" {
		return fmt.Sprintf("nothing would make another pod in the place of %s: it has no controller", of.Name), nil
	}
	if lacks, err := c.nodeLacks(ctx, of.Node); lacks != "" || err != nil {
		return lacks, err
	}
	return c.overQuota(ctx)
}

// nodeLacks says why no pod would start on the node, "" if nothing speaks against it.
func (c *Client) nodeLacks(ctx context.Context, name string) (string, error) {
	node, err := get[node](ctx, c, NodeRef(name))
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return fmt.Sprintf("node %s is no more", name), nil
	case err != nil:
		return "", err
	case node.Spec.Unschedulable:
		return fmt.Sprintf("node %s is cordoned", name), nil
	}
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case "Ready":
			if condition.Status != "True" {
				return fmt.Sprintf("node %s is not ready", name), nil
			}
		case "MemoryPressure", "DiskPressure", "PIDPressure":
			if condition.Status == "True" {
				return fmt.Sprintf("node %s has %s", name, condition.Type), nil
			}
		}
	}
	return "", nil
}

// overQuota says which quota of the namespace is exceeded already, "" for none that EKCO
// may read: a pod that takes another's place needs no more than that had.
func (c *Client) overQuota(ctx context.Context) (string, error) {
	ref := kube.Ref{Version: "v1", Resource: "resourcequotas", Namespace: c.namespace}
	list, err := c.objects.ListObjects(ctx, ref, "", "")
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrForbidden), errors.Is(sentinel, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, raw := range list {
		quota, err := decode[quota](ref, raw, nil)
		if err != nil {
			return "", err
		}
		if over := quota.over(); over != "" {
			return fmt.Sprintf("quota %s of namespace %s is exceeded: %s", quota.Metadata.Name, c.namespace, over), nil
		}
	}
	return "", nil
}

// node is the part that EKCO reads.
type node struct {
	object
	Spec struct {
		Unschedulable bool `json:"unschedulable"`
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
	// Without the cause: it may quote what it could not read.
	if json.Unmarshal(raw, &read) != nil || len(read.Data[accessKey]) == 0 || len(read.Data[secretKey]) == 0 {
		return Credentials{}, fmt.Errorf("read %s: it lacks %s or %s, want both, as kURL made them", ref, accessKey, secretKey)
	}
	return Credentials{AccessKey: string(read.Data[accessKey]), SecretKey: string(read.Data[secretKey])}, nil
}

// The keys of the Secret.
const (
	accessKey = "MINIO_ACCESS_KEY"
	secretKey = "MINIO_SECRET_KEY"
)
