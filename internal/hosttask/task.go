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

// Task is a program to run on a node. A plan stores all of it. It must not contain a secret: everybody who may read
// pods can read it.
type Task struct {
	// Name is a short name such as "node-report", the value of [LabelTask].
	Name string `json:"name"`
	// Node is the name of the node that runs it, NodeUID the UID of that node.
	Node    string `json:"node"`
	NodeUID string `json:"node_uid"`
	// Image has the program at /usr/bin/ekco.
	Image string `json:"image"`
	// Args are the program's arguments.
	Args []string `json:"args"`
	// Paths are the paths of the host that it can access.
	Paths []Path `json:"paths,omitempty"`
	// Privileged runs the program privileged. Otherwise it is root with only the capabilities in Capabilities.
	Privileged bool `json:"privileged,omitempty"`
	// Capabilities are the program's capabilities, by their names in Kubernetes, such as "CHOWN".
	Capabilities []string `json:"capabilities,omitempty"`
	// HostNetwork runs it in the host's network, for access to servers on localhost.
	HostNetwork bool `json:"host_network,omitempty"`
	// Limit is how long the program may run; zero means two minutes. Start is how long it
	// may take to start, including the pull of its image; zero means 30 s. Installers wait
	// no longer than two minutes for a pending pod.
	Limit journal.Duration `json:"limit,omitzero"`
	Start journal.Duration `json:"start,omitzero"`
	// Then, unless it is nil, runs after EKCO's program has succeeded, with the same /tmp. The task is done when
	// it exits with 0.
	Then *Program `json:"then,omitempty"`
	// LosesNode is set if the program may cut off its node. EKCO then does not give up the task while the node does not
	// answer, and keeps its pod when EKCO ends: the program may run before the kubelet can report it.
	LosesNode bool `json:"loses_node,omitempty"`
	// Trial is set if the program reports the result of a change and then waits until [AnnotationConfirmed] on its pod
	// is "true". If that takes too long, it undoes the change. It must not cut off its node before the report.
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
	// Type is the hostPath type of Kubernetes, for example "Directory" or "DirectoryOrCreate"; if the path does not
	// fit, the pod does not start. Empty checks nothing, and containerd creates a missing directory.
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

// Longest is the maximum duration of the task after the creation of its pod.
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
