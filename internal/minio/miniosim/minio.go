package miniosim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
)

// Namespace is the namespace of MinIO.
const Namespace = "minio"

// MinIO is the simulation. Create it with [Install].
type MinIO struct {
	*kubesim.Objects
	// UID is the UID of the StatefulSet.
	UID string

	// reconciling serializes the controllers of Kubernetes.
	reconciling sync.Mutex

	mu sync.Mutex
	// nodes are the nodes on which pods can start.
	nodes []string
	// silent are the names of the pods that run but do not answer.
	silent map[string]bool
	// healing are the replicas whose drives are being restored. A new drive is restored for the time healsFor.
	healing  []string
	healsFor time.Duration
	// lost are the nodes that do not answer: their pods neither answer nor end.
	lost map[string]bool
	// asked counts the health questions.
	asked  map[minio.Question]int
	drives drives
	nested nested
	// hidden is set when programs in pods fail.
	hidden bool
}

var _ minio.Servers = (*MinIO)(nil)

// singleDeployment is the part of kURL's Deployment that EKCO reads.
const singleDeployment = `{"spec":{"replicas":1,"template":{"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"minio-pv-claim"}}]}}}}`

// Install installs both MinIOs on the nodes like kURL. The highly available MinIO has no replicas yet.
func Install(objects *kubesim.Objects, nodes ...string) *MinIO {
	m := &MinIO{Objects: objects, nodes: nodes, silent: map[string]bool{}, lost: map[string]bool{}, asked: map[minio.Question]int{}, drives: newDrives(), nested: nested{}}
	objects.Holds = func(ref kube.Ref) bool { return ref.Resource == "pods" || ref.Resource == "persistentvolumeclaims" }
	m.UID = objects.Put(minio.StatefulSetRef(Namespace), `{"metadata":{"annotations":{"kurl.sh/desired-scale":"6"}},"spec":{"replicas":0},"status":{"observedGeneration":1}}`)
	objects.Put(minio.DeploymentRef(Namespace), singleDeployment)
	secret := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	objects.Put(minio.SecretRef(Namespace), fmt.Sprintf(`{"data":{"MINIO_ACCESS_KEY":%q,"MINIO_SECRET_KEY":%q}}`, secret(credentials.AccessKey), secret(credentials.SecretKey)))
	m.Point(`{"app":"minio"}`)
	return m
}

// Point sets the selector of the Service.
func (m *MinIO) Point(selector string) {
	m.Remove(minio.ServiceRef(Namespace))
	m.Put(minio.ServiceRef(Namespace), `{"spec":{"clusterIP":"10.96.0.9","selector":`+selector+`}}`)
}

// Client returns a client of the simulation.
func (m *MinIO) Client(objects kube.Objects) *minio.Client {
	return minio.NewClient(objects, m, Namespace)
}

// Pod is a replica in Kubernetes.
type Pod struct {
	// Node is empty for a pending pod.
	Node string
	// Message is the scheduler's reason for a pending pod.
	Message string
}

// Run replaces the pod of a replica, and returns its UID.
func (m *MinIO) Run(i int, pod Pod) string {
	ref := minio.PodRef(Namespace, i)
	status := map[string]any{"phase": "Running", "podIP": ref.Name, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if pod.Node == "" {
		status = map[string]any{"phase": "Pending", "conditions": []any{map[string]any{
			"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": pod.Message,
		}}}
	}
	spec := map[string]any{"nodeName": pod.Node, "containers": driveMounts, "volumes": driveVolumes}
	content, err := json.Marshal(map[string]any{"spec": spec, "status": status})
	if err != nil {
		panic(err)
	}
	m.Remove(ref)
	if claim := minio.ClaimRef(Namespace, ref.Name); m.Object(claim) == nil {
		m.Put(claim, fmt.Sprintf(`{"spec":{"volumeName":%q}}`, pod.Node))
	}
	return m.Put(ref, string(content))
}

// HealFor sets the time for which a replica with a new volume restores its data.
func (m *MinIO) HealFor(span time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healsFor = span
}

// Lose makes a node stop answering: its pods neither answer nor end, and no pod can use its volumes.
func (m *MinIO) Lose(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[node] = true
	m.nodes = slices.DeleteFunc(slices.Clone(m.nodes), func(other string) bool { return other == node })
}

// Join adds a node.
func (m *MinIO) Join(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = append(slices.Clone(m.nodes), node)
}

// Spread returns the nodes of the running replicas, ordered by replica.
func (m *MinIO) Spread() (spread []string) {
	running := m.running()
	for _, name := range slices.Sorted(maps.Keys(running)) {
		spread = append(spread, running[name])
	}
	return spread
}

// Reconcile acts like the controllers of Kubernetes: it ends deleted pods, removes deleted claims that no pod uses,
// starts missing pods, and updates the status of the StatefulSet. A pod starts on the node of its volume, or on the
// node with the fewest replicas.
func (m *MinIO) Reconcile() {
	m.reconciling.Lock()
	defer m.reconciling.Unlock()
	set := m.Object(minio.StatefulSetRef(Namespace))
	if set == nil {
		return
	}
	replicas := int(set["spec"].(map[string]any)["replicas"].(float64))
	for i := range maxReplicas {
		m.end(i)
		if i < replicas && m.Object(minio.PodRef(Namespace, i)) == nil {
			m.start(i, replicas)
		}
	}
	ready := len(m.running())
	m.Edit(minio.StatefulSetRef(Namespace), func(object map[string]any) {
		object["status"] = map[string]any{
			"observedGeneration": object["metadata"].(map[string]any)["generation"], "replicas": replicas, "readyReplicas": ready,
		}
	})
}

// ReconcileAfter makes Kubernetes react to each change after the time span.
func (m *MinIO) ReconcileAfter(span time.Duration) {
	m.AfterEffect = func(string) { time.AfterFunc(span, m.Reconcile) }
}

// end removes a replica's pod and claim if they were deleted.
func (m *MinIO) end(i int) {
	ref := minio.PodRef(Namespace, i)
	claim := minio.ClaimRef(Namespace, ref.Name)
	if pod := m.Object(ref); ends(pod) && !m.isLost(pod["spec"].(map[string]any)["nodeName"].(string)) {
		m.Remove(ref)
	}
	if ends(m.Object(claim)) && m.Object(ref) == nil {
		m.Remove(claim)
	}
}

func ends(object map[string]any) bool {
	return object != nil && object["metadata"].(map[string]any)["deletionTimestamp"] != nil
}

func (m *MinIO) isLost(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[node]
}

// start starts a pod, and creates its volume if it has none.
func (m *MinIO) start(i, replicas int) {
	if claim := m.Object(minio.ClaimRef(Namespace, minio.PodRef(Namespace, i).Name)); claim != nil {
		node := claim["spec"].(map[string]any)["volumeName"].(string)
		if m.isLost(node) {
			m.Run(i, Pod{Message: "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity."})
			return
		}
		m.Run(i, Pod{Node: node})
		return
	}
	if node := m.emptiest(replicas); node != "" {
		m.Run(i, Pod{Node: node})
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.nested, minio.PodRef(Namespace, i).Name) // MinIO does not restore these
		if m.healsFor > 0 {
			m.drives.lacks[minio.PodRef(Namespace, i).Name] = slices.Clone(m.drives.objects)
			time.AfterFunc(noticesAfter, func() { m.heals(minio.PodRef(Namespace, i).Name) })
		}
	}
}

// noticesAfter is the time until a server notices that its drive is new. Until then no server reports that the drive is
// being restored.
const noticesAfter = 10 * time.Second

// heals simulates the restore of the data on a replica's new volume.
func (m *MinIO) heals(pod string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healing = append(m.healing, pod)
	time.AfterFunc(m.healsFor, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if at := slices.Index(m.healing, pod); at >= 0 {
			m.healing = slices.Delete(m.healing, at, at+1)
			m.drives.lacks[pod] = slices.Clone(m.drives.objects[:m.drives.early])
		}
	})
}

func (m *MinIO) emptiest(replicas int) (best string) {
	m.mu.Lock()
	nodes := m.nodes
	m.mu.Unlock()
	least := replicas + 1
	on := map[string]int{}
	for _, node := range m.running() {
		on[node]++
	}
	for _, node := range nodes {
		if on[node] < least {
			best, least = node, on[node]
		}
	}
	return best
}

// maxReplicas is the maximum number of replicas.
const maxReplicas = 8

// running returns the nodes of the running replicas, by name.
func (m *MinIO) running() map[string]string {
	running := map[string]string{}
	for i := range maxReplicas {
		node := ""
		m.Look(minio.PodRef(Namespace, i), func(pod map[string]any) {
			if pod != nil && pod["status"].(map[string]any)["phase"] == "Running" && !ends(pod) {
				node = pod["spec"].(map[string]any)["nodeName"].(string)
			}
		})
		if node != "" && !m.isLost(node) {
			running[minio.PodRef(Namespace, i).Name] = node
		}
	}
	return running
}

// Silence makes a replica stop answering, or answer again.
func (m *MinIO) Silence(i int, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent[minio.PodRef(Namespace, i).Name] = silent
}

// Heal sets the replicas whose drives are being restored.
func (m *MinIO) Heal(replicas ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healing = nil
	for _, i := range replicas {
		m.healing = append(m.healing, minio.PodRef(Namespace, i).Name)
	}
}

// Asked returns the number of times that a question was asked.
func (m *MinIO) Asked(question minio.Question) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[question]
}

var errNoServer = errors.New("connection refused")

// Health implements [minio.Servers]: a quorum is four of six drives. Only in an answer to [minio.WithoutYou] does a
// server report that drives of other servers are being restored. Then it answers no.
func (m *MinIO) Health(_ context.Context, address string, question minio.Question) (minio.Answer, error) {
	running := m.running()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[question]++
	if _, runs := running[address]; !runs || m.silent[address] {
		return minio.Answer{}, fmt.Errorf("ask MinIO at %s for its health: %w", address, errNoServer)
	}
	for name := range running {
		if m.silent[name] {
			delete(running, name)
		}
	}
	answer := minio.Answer{Code: 200, Quorum: 4}
	if question == minio.Now {
		if answer.Yes = len(running) >= answer.Quorum; !answer.Yes {
			answer.Code = 503
		}
		return answer, nil
	}
	for _, pod := range m.healing {
		if pod != address {
			answer.Healing++
		}
	}
	if answer.Yes = len(running)-1 >= answer.Quorum && answer.Healing == 0; !answer.Yes {
		answer.Code = 412
	}
	return answer, nil
}
