package hosttask

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/journal"
)

// Task is a program to run on a node. A plan stores it, so it is complete. It must not contain
// a secret: everybody who may read pods can read it.
type Task struct {
	// Name says in a word what it does, for example "node-report". It is the value of
	// [LabelTask].
	Name string `json:"name"`
	// Node is the name of the node that runs it, NodeUID the UID of that node.
	Node    string `json:"node"`
	NodeUID string `json:"node_uid"`
	// Image has the program at /usr/bin/ekco.
	Image string `json:"image"`
	// Args are the program's.
	Args []string `json:"args"`
	// Paths are the paths of the host that it can access.
	Paths []Path `json:"paths,omitempty"`
	// Privileged lets it do everything on the host. Without, it is root without any
	// capability but those of Capabilities.
	Privileged bool `json:"privileged,omitempty"`
	// Capabilities are those that it keeps, by their names in Kubernetes, such as "CHOWN".
	Capabilities []string `json:"capabilities,omitempty"`
	// HostNetwork runs it in the host's network, so that it can reach what listens on localhost.
	HostNetwork bool `json:"host_network,omitempty"`
	// Limit is how long the program may run; zero means two minutes. Start is how long it
	// may take to start, including the pull of its image; zero means 30 s. Installers wait
	// no longer than two minutes for a pending pod.
	Limit journal.Duration `json:"limit,omitzero"`
	Start journal.Duration `json:"start,omitzero"`
	// Then, unless it is nil, runs after EKCO's program has succeeded, with the same /tmp. The task is done when
	// it exits with 0.
	Then *Program `json:"then,omitempty"`
	// LosesNode is set if the program may cut off its node. The task is then not given up while the node does not
	// answer, and its pod is kept when EKCO ends: the program may run before the kubelet can report it.
	LosesNode bool `json:"loses_node,omitempty"`
	// Trial is set if the program reports the result of a change and then waits until [AnnotationConfirmed] on its
	// pod is "true". If it does not see that in time, it undoes the change. It does not cut off its node before it
	// has reported.
	Trial bool `json:"trial,omitempty"`
	// Grace is how long the program may take to end after SIGTERM; zero means 5 s.
	Grace journal.Duration `json:"grace,omitzero"`
}

// Writes reports whether it can change anything on its host.
func (t Task) Writes() bool {
	return t.Privileged || t.Trial || slices.ContainsFunc(t.Paths, func(p Path) bool { return p.Write })
}

// Program is a program of another image.
type Program struct {
	Image   string   `json:"image"`
	Command []string `json:"command"`
}

// Path is a directory or file of the host.
type Path struct {
	// Host is the path on the host, At the path in the pod.
	Host string `json:"host"`
	At   string `json:"at"`
	// Type is that of Kubernetes, for example "Directory" or "DirectoryOrCreate"; one that
	// does not fit keeps the pod from starting. Empty checks nothing, and containerd then
	// makes a directory of what is missing.
	Type string `json:"type,omitempty"`
	// Write lets the program change it.
	Write bool `json:"write,omitempty"`
}

// directory reports whether the path is known to be a directory.
func (p Path) directory() bool {
	return p.Type == string(corev1.HostPathDirectory) || p.Type == string(corev1.HostPathDirectoryOrCreate)
}

func (t Task) limit() time.Duration { return cmp.Or(time.Duration(t.Limit), 2*time.Minute) }
func (t Task) grace() time.Duration { return cmp.Or(time.Duration(t.Grace), 5*time.Second) }
func (t Task) start() time.Duration { return cmp.Or(time.Duration(t.Start), 30*time.Second) }

// Longest is how long the task may take after its pod was created.
func (t Task) Longest() time.Duration { return t.start() + t.limit() + overdue }

// Owner is the step that a task belongs to.
type Owner struct{ Action, Step string }

// key identifies the owner in a label, whose length is limited.
func (o Owner) key() string {
	sum := sha256.Sum256([]byte(o.Action + "\x00" + o.Step))
	return hex.EncodeToString(sum[:8])
}

// PodName is the name of the task's pod.
func (t Task) PodName(owner Owner) string { return t.Name + "-" + owner.key() }
