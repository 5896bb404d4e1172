package miniosim

import (
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// Both is an installation with what both MinIOs store: the single one has a pod, which
// Kubernetes replaces, and each answers while it runs. Make it with [InstallBoth].
type Both struct {
	*MinIO
	// Source is what the single one stores, Target what the highly available one does.
	Source, Target *s3sim.Store
	// Refused are the names of what of users and policies the target does not accept.
	Refused []string

	mu sync.Mutex
	// pod is the name of the single one's pod, empty if there is none; pods counts them.
	pod  string
	pods int
	// stuck has no pod start any more, hangs none end; rerolled has each be of another
	// controller.
	stuck, hangs, rerolled bool
	// full is set when the target has no room, free how much it says it has.
	full bool
	free uint64
	// denied are the sides that do not accept the credentials.
	denied map[string]bool
	iam    map[string]*s3.IAM
}

// The sides, as faults name them.
const (
	SourceSide = "source"
	TargetSide = "target"
)

var credentials = minio.Credentials{AccessKey: "kurl", SecretKey: "s3cr3t-of-both"}

// Controller is the UID of what makes the single one's pods.
const Controller = "uid-rs"

// InstallBoth installs both as kURL does, the single one with a claim, on those nodes.
func InstallBoth(objects *kubesim.Objects, nodes ...string) *Both {
	b := &Both{
		MinIO: Install(objects, nodes...), Source: s3sim.New(), Target: s3sim.New(),
		free: 1 << 40, denied: map[string]bool{}, iam: map[string]*s3.IAM{SourceSide: newIAM("app"), TargetSide: newIAM()},
	}
	secret := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	objects.Put(minio.SecretRef(Namespace), fmt.Sprintf(`{"data":{"MINIO_ACCESS_KEY":%q,"MINIO_SECRET_KEY":%q}}`, secret(credentials.AccessKey), secret(credentials.SecretKey)))
	objects.Put(minio.SingleClaimRef(Namespace), `{"spec":{"volumeName":"data"}}`)
	for _, name := range nodes {
		objects.Put(minio.NodeRef(name), `{"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}]}}`)
	}
	b.startSingle()
	return b
}

// Secrets are texts that must never be seen anywhere.
func Secrets() []string { return []string{credentials.SecretKey, userSecret} }

// ReconcileBothAfter has Kubernetes react to each change after that time, and with the
// single one's pod after less.
func (b *Both) ReconcileBothAfter(span, single time.Duration) {
	b.AfterEffect = func(string) {
		time.AfterFunc(single, b.ReconcileSingle)
		time.AfterFunc(span, b.Reconcile)
	}
}

// ReconcileSingle is what Kubernetes does with the single one: a pod that was asked to end
// does, another one starts in its place as long as there is the Deployment, and a claim
// goes that nobody uses any more.
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
	b.pod = fmt.Sprintf("minio-5d9c-%d", b.pods)
	name, ip, controller := b.pod, fmt.Sprintf("10.9.0.%d", b.pods), Controller
	if b.rerolled {
		controller = fmt.Sprint(Controller, "-", b.pods)
	}
	b.mu.Unlock()
	b.Put(minio.SinglePodRef(Namespace, name), fmt.Sprintf(`{"metadata":{"labels":{"app":"minio"},"ownerReferences":[{"uid":%q,"controller":true}]},
		"spec":{"nodeName":"a"},"status":{"phase":"Running","podIP":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, controller, ip))
}

// KillSingle has the single one's pod vanish, as when its node is purged; another one
// starts after a while, unless none can.
func (b *Both) KillSingle() {
	name := b.podName()
	b.Remove(minio.SinglePodRef(Namespace, name))
	b.setPod("")
	time.AfterFunc(5*time.Second, b.ReconcileSingle)
}

// Stick has no pod of the single one start any more, or start again.
func (b *Both) Stick(stuck bool) {
	b.mu.Lock()
	b.stuck = stuck
	b.mu.Unlock()
	if !stuck {
		b.ReconcileSingle()
	}
}

// Hang has no pod of the single one end any more, or end again.
func (b *Both) Hang(hangs bool) {
	b.mu.Lock()
	b.hangs = hangs
	b.mu.Unlock()
	if !hangs {
		b.ReconcileSingle()
	}
}

// Reroll has each pod that starts be of another controller than the one before, as when the
// Deployment is changed all the time.
func (b *Both) Reroll(rerolled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rerolled = rerolled
}

// Fill leaves the target so much room; with none it stores nothing more.
func (b *Both) Fill(free uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free, b.full = free, free == 0
}

// Deny has a side not accept the credentials any more, or accept them again.
func (b *Both) Deny(side string, denies bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied[side] = denies
}

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

// singleAt reports whether the single one's pod answers at that host.
func (b *Both) singleAt(host string) bool {
	name := b.podName()
	if name == "" {
		return false
	}
	pod := b.Object(minio.SinglePodRef(Namespace, name))
	return pod != nil && pod["status"].(map[string]any)["podIP"] == host
}

// quorum reports whether the highly available one can write.
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

// ServiceLeads returns the label that the Service selects by, empty if there is none.
func (b *Both) ServiceLeads() string {
	object := b.Object(minio.ServiceRef(Namespace))
	if object == nil {
		return ""
	}
	app, _ := object["spec"].(map[string]any)["selector"].(map[string]any)["app"].(string)
	return app
}

// Cordon has nothing more start on a node, or start again.
func (b *Both) Cordon(node string, cordoned bool) {
	b.Edit(minio.NodeRef(node), func(object map[string]any) { object["spec"] = map[string]any{"unschedulable": cordoned} })
}

var _ kube.Objects = (*Both)(nil)
