package miniosim

import (
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// Both simulates an installation with standalone MinIO and the highly available MinIO, and the data of both. It
// replaces the pod of standalone MinIO like Kubernetes. Each MinIO answers while it runs. Create it with [InstallBoth].
type Both struct {
	*MinIO
	// Source is the store of standalone MinIO, Target that of the highly available MinIO.
	Source, Target *s3sim.Store
	// Refused are the names of users and policies that the target does not accept.
	Refused []string
	// Releases are the versions of the servers, by side. By default both have the same version.
	Releases map[string]string

	mu sync.Mutex
	// pod is the name of the pod of standalone MinIO, or empty. pods counts all its pods so far.
	pod  string
	pods int
	// If stuck is set, no pod starts. If hangs is set, no pod ends. If rerolled is set, each new pod has another
	// controller.
	stuck, hangs, rerolled bool
	// id and targetID are the deployment ids of the stores. If moved is set, the next pod of standalone MinIO uses
	// that store.
	id, targetID string
	moved        *s3sim.Store
	// loading is the time for which a new pod has no users. loaded is the time at which the last pod has its users.
	loading time.Duration
	loaded  time.Time
	// full is set when the target has no free space. free is the free space that the target reports.
	full bool
	free uint64
	// denied are the sides that do not accept the credentials.
	denied map[string]bool
	iam    map[string]*s3.IAM
}

// The names of the sides.
const (
	SourceSide = "source"
	TargetSide = "target"
)

var credentials = minio.Credentials{AccessKey: "kurl", SecretKey: "s3cr3t-of-both"}

// Controller is the name of the ReplicaSet of the pods of standalone MinIO.
const Controller = "minio-5d9c"

// InstallBoth installs both MinIOs on the nodes like kURL. Standalone MinIO has a claim.
func InstallBoth(objects *kubesim.Objects, nodes ...string) *Both {
	b := &Both{
		MinIO: Install(objects, nodes...), Source: s3sim.New(), Target: s3sim.New(),
		id: "store-1", targetID: "target-1", free: 1 << 40, denied: map[string]bool{}, iam: map[string]*s3.IAM{SourceSide: newIAM("app"), TargetSide: newIAM()},
	}
	objects.Put(minio.SingleClaimRef(Namespace), `{"spec":{"volumeName":"data"}}`)
	for _, name := range nodes {
		objects.Put(minio.NodeRef(name), `{"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}]}}`)
	}
	b.startSingle()
	return b
}

// Secrets are texts that must not appear anywhere.
func Secrets() []string { return []string{credentials.SecretKey, userSecret} }

// ReconcileBothAfter makes Kubernetes react to each change: to the pod of standalone MinIO after the time single, and
// to everything else after the time span.
func (b *Both) ReconcileBothAfter(span, single time.Duration) {
	b.AfterEffect = func(string) {
		time.AfterFunc(single, b.ReconcileSingle)
		time.AfterFunc(span, b.Reconcile)
	}
}

// ReconcileSingle acts like the controllers of Kubernetes for standalone MinIO: it ends a deleted pod, replaces it if
// the Deployment exists, and removes a deleted claim that no pod uses.
func (b *Both) ReconcileSingle() {
	b.reconciling.Lock()
	defer b.reconciling.Unlock()
	deployed := b.Object(minio.DeploymentRef(Namespace)) != nil
	if name := b.podName(); name != "" {
		pod := b.Object(minio.SinglePodRef(Namespace, name))
		if !b.isHanging() && (!deployed || pod == nil || ends(pod)) {
			b.Remove(minio.SinglePodRef(Namespace, name))
			b.setPod("")
			if deployed {
				time.AfterFunc(time.Second, b.ReconcileSingle)
			}
		}
	} else if deployed {
		b.startSingle()
	}
	claim := minio.SingleClaimRef(Namespace)
	if ends(b.Object(claim)) && b.podName() == "" && !deployed {
		b.Remove(claim)
	}
}

func (b *Both) startSingle() {
	b.mu.Lock()
	if b.stuck {
		b.mu.Unlock()
		return
	}
	b.pods++
	b.loaded = time.Now().Add(b.loading)
	if b.moved != nil {
		b.Source, b.moved, b.id = b.moved, nil, "store-2"
	}
	b.pod = fmt.Sprintf("minio-5d9c-%d", b.pods)
	name, ip, controller := b.pod, fmt.Sprintf("10.9.0.%d", b.pods), Controller
	if b.rerolled {
		controller = fmt.Sprint(Controller, "-", b.pods)
	}
	b.mu.Unlock()
	set, uid := b.replicaSet(controller)
	b.Put(minio.SinglePodRef(Namespace, name), singlePod(set, uid, ip))
}

// replicaSet creates the ReplicaSet with that name if it does not exist.
func (b *Both) replicaSet(name string) (set, uid string) {
	ref := minio.ReplicaSetRef(Namespace, name)
	if b.Object(ref) == nil {
		of := b.Object(minio.DeploymentRef(Namespace))["metadata"].(map[string]any)["uid"]
		b.Put(ref, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"minio","uid":%q,"controller":true}]}}`, of))
	}
	return name, b.Object(ref)["metadata"].(map[string]any)["uid"].(string)
}

// singlePod is a pod with the label of standalone MinIO.
func singlePod(set, uid, ip string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"minio"},"ownerReferences":[{"kind":"ReplicaSet","name":%q,"uid":%q,"controller":true}]},
		"spec":{"nodeName":"a","containers":%s,"volumes":%s},"status":{"phase":"Running","podIP":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, set, uid, driveMounts, driveVolumes, ip)
}

// Crowd adds a pod with the label of standalone MinIO that does not belong to its Deployment, or
// removes it.
func (b *Both) Crowd(crowded bool) {
	ref := minio.SinglePodRef(Namespace, "minio-by-hand")
	if b.Remove(ref); crowded {
		b.Put(ref, singlePod("other", "uid-other", "10.8.0.1"))
	}
}

// KillSingle removes the pod of standalone MinIO, as if its node were purged. A new pod starts later, unless pods
// cannot start.
func (b *Both) KillSingle() {
	name := b.podName()
	b.Remove(minio.SinglePodRef(Namespace, name))
	b.setPod("")
	time.AfterFunc(5*time.Second, b.ReconcileSingle)
}

// Move makes the next pod of standalone MinIO use another store, as if its volume were new or on another node.
func (b *Both) Move(store *s3sim.Store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved = store
}

// EmptyTarget gives the highly available MinIO new volumes.
func (b *Both) EmptyTarget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Target, b.targetID = s3sim.New(), "target-2"
}

// LoadUsersIn sets the time after which a new pod of standalone MinIO has its users.
func (b *Both) LoadUsersIn(span time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loading = span
}

// source returns the current store of standalone MinIO.
func (b *Both) source() *s3sim.Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Source
}

// target returns the current store of the highly available MinIO.
func (b *Both) target() *s3sim.Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Target
}

// Stick prevents pods of standalone MinIO from starting, or allows it again.
func (b *Both) Stick(stuck bool) {
	b.mu.Lock()
	b.stuck = stuck
	b.mu.Unlock()
	if !stuck {
		b.ReconcileSingle()
	}
}

// Hang prevents pods of standalone MinIO from ending, or allows it again.
func (b *Both) Hang(hangs bool) {
	b.mu.Lock()
	b.hangs = hangs
	b.mu.Unlock()
	if !hangs {
		b.ReconcileSingle()
	}
}

// Reroll gives each new pod another controller, as if the Deployment changed all the time.
func (b *Both) Reroll(rerolled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rerolled = rerolled
}

// Fill sets the free space of the target. With 0 the target accepts no more objects.
func (b *Both) Fill(free uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free, b.full = free, free == 0
}

// Deny makes a side refuse the credentials, or accept them again.
func (b *Both) Deny(side string, denies bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied[side] = denies
}

// SinglePods returns the names of the pods of standalone MinIO.
func (b *Both) SinglePods() []string { return []string{b.podName()} }

func (b *Both) isHanging() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hangs
}

func (b *Both) podName() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pod
}

func (b *Both) setPod(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pod = name
}

// singleAt reports whether the pod of standalone MinIO answers at that host.
func (b *Both) singleAt(host string) bool {
	name := b.podName()
	if name == "" {
		return false
	}
	answers := false
	b.Look(minio.SinglePodRef(Namespace, name), func(pod map[string]any) {
		answers = pod != nil && pod["status"].(map[string]any)["podIP"] == host
	})
	return answers
}

// quorum reports whether the highly available MinIO has enough replicas to write.
func (b *Both) quorum() bool {
	running := b.running()
	b.MinIO.mu.Lock()
	defer b.MinIO.mu.Unlock()
	online := 0
	for name := range running {
		if !b.silent[name] {
			online++
		}
	}
	return online >= 4
}

// ServiceLeads returns the label that the Service selects, or "".
func (b *Both) ServiceLeads() string {
	object := b.Object(minio.ServiceRef(Namespace))
	if object == nil {
		return ""
	}
	app, _ := object["spec"].(map[string]any)["selector"].(map[string]any)["app"].(string)
	return app
}

// Cordon cordons a node, or uncordons it.
func (b *Both) Cordon(node string, cordoned bool) {
	b.Edit(minio.NodeRef(node), func(object map[string]any) { object["spec"] = map[string]any{"unschedulable": cordoned} })
}

var _ kube.Objects = (*Both)(nil)
