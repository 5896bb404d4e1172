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

// Namespace is where it is installed.
const Namespace = "minio"

// MinIO is the simulation. Make it with [Install].
type MinIO struct {
	*kubesim.Objects
	// UID is that of the StatefulSet.
	UID string

	// reconciling serialises what Kubernetes does, as its controllers do for one object.
	reconciling sync.Mutex

	mu sync.Mutex
	// nodes are those that pods can start on.
	nodes []string
	// silent are the pods that run and do not answer, by name.
	silent map[string]bool
	// healing are the replicas whose drives are being healed, each new one for healsFor.
	healing  []string
	healsFor time.Duration
	// lost are the nodes whose pods do not end.
	lost map[string]bool
	// asked counts the questions.
	asked  map[minio.Question]int
	drives drives
	nested nested
	// hidden is set when no program runs in pods.
	hidden bool
}

var _ minio.Servers = (*MinIO)(nil)

// singleDeployment is kURL's, as far as EKCO reads it.
const singleDeployment = `{"spec":{"replicas":1,"template":{"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"minio-pv-claim"}}]}}}}`

// Install installs MinIO as kURL does, the highly available one without replicas, on those
// nodes.
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

// Point has the Service lead where the selector says.
func (m *MinIO) Point(selector string) {
	m.Remove(minio.ServiceRef(Namespace))
	m.Put(minio.ServiceRef(Namespace), `{"spec":{"clusterIP":"10.96.0.9","selector":`+selector+`}}`)
}

// Client returns a client of it.
func (m *MinIO) Client(objects kube.Objects) *minio.Client {
	return minio.NewClient(objects, m, Namespace)
}

// Pod is a replica as Kubernetes has it.
type Pod struct {
	// Node is empty for one that waits.
	Node string
	// Message is the scheduler's about one that waits.
	Message string
}

// Run puts a replica's pod in the place of the one that there was, and returns its UID.
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

// HealFor has each replica that gets a new volume restore its data for that time.
func (m *MinIO) HealFor(span time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healsFor = span
}

// Lose has a node not answer any more: pods on it do not answer, nor end, and no volume on it
// can be used.
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

// Spread returns on which node each replica runs, by order.
func (m *MinIO) Spread() (spread []string) {
	running := m.running()
	for _, name := range slices.Sorted(maps.Keys(running)) {
		spread = append(spread, running[name])
	}
	return spread
}

// Reconcile is what Kubernetes does: pods that were asked to end do, and so do claims that
// nobody uses any more; pods that are missing start, each where its volume is, or on the
// node that has the fewest; and the StatefulSet says how many are ready.
func (m *MinIO) Reconcile() {
	m.reconciling.Lock()
	defer m.reconciling.Unlock()
	set := m.Object(minio.StatefulSetRef(Namespace))
	if set == nil {
		return
	}
	replicas := int(set["spec"].(map[string]any)["replicas"].(float64))
	for i := range most {
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

// ReconcileAfter has Kubernetes react to each change after that time.
func (m *MinIO) ReconcileAfter(span time.Duration) {
	m.AfterEffect = func(string) { time.AfterFunc(span, m.Reconcile) }
}

// end lets a pod and a claim go that were asked to.
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

// start starts a pod, which without a volume gets a new one.
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
		delete(m.nested, minio.PodRef(Namespace, i).Name) // which nobody restores
		if m.healsFor > 0 {
			m.drives.lacks[minio.PodRef(Namespace, i).Name] = slices.Clone(m.drives.objects)
			time.AfterFunc(noticesAfter, func() { m.heals(minio.PodRef(Namespace, i).Name) })
		}
	}
}

// noticesAfter is how long a server takes to notice that its drive is new. Until then the
// drive is none, and nobody calls it one that is healed.
const noticesAfter = 10 * time.Second

// heals restores the data of a replica's new volume.
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

// most is how many replicas there may be.
const most = 8

// running returns the nodes of the replicas that run, by name.
func (m *MinIO) running() map[string]string {
	running := map[string]string{}
	for i := range most {
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

// Silence has a replica not answer any more, or answer again.
func (m *MinIO) Silence(i int, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent[minio.PodRef(Namespace, i).Name] = silent
}

// Heal says of which replicas the drives are being healed.
func (m *MinIO) Heal(replicas ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healing = nil
	for _, i := range replicas {
		m.healing = append(m.healing, minio.PodRef(Namespace, i).Name)
	}
}

// Asked returns how often the question was asked.
func (m *MinIO) Asked(question minio.Question) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[question]
}

var errNoServer = errors.New("connection refused")

// Health implements [minio.Servers]: four of six drives are a quorum. What is healed a server
// says only when it is asked about maintenance, and of the others only; it does not want to be
// spared then.
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
