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

// Task is a program to run on a node. A plan stores the whole task. It must not contain a secret, because every user
// who may read pods can read it.
type Task struct {
	// Name is a short name such as "node-report", the value of [LabelTask].
	Name string `json:"name"`
	// Node and NodeUID are the name and the UID of the node that runs the task.
	Node    string `json:"node"`
	NodeUID string `json:"node_uid"`
	// Image is the image with EKCO's program at /usr/bin/ekco.
	Image string `json:"image"`
	// Args are the program's arguments.
	Args []string `json:"args"`
	// Paths are the paths of the host that the program can access.
	Paths []Path `json:"paths,omitempty"`
	// Privileged runs the program privileged. Otherwise it is root with only the capabilities in Capabilities.
	Privileged bool `json:"privileged,omitempty"`
	// Capabilities are the program's capabilities, by their names in Kubernetes, such as "CHOWN".
	Capabilities []string `json:"capabilities,omitempty"`
	// HostNetwork runs the program in the host's network, for access to servers on localhost.
	HostNetwork bool `json:"host_network,omitempty"`
	// Limit is the time limit of the program; zero means two minutes. Start is the time limit for its start,
	// including the pull of the image; zero means 30 s. Installers wait at most two minutes for a pending pod.
	Limit journal.Duration `json:"limit,omitzero"`
	Start journal.Duration `json:"start,omitzero"`
	// Then is an optional second program. It runs after EKCO's program has succeeded, with the same /tmp. The task
	// succeeds when the second program exits with 0.
	Then *Program `json:"then,omitempty"`
	// LosesNode is set if the program may cut off its node, so that the kubelet cannot report that the program runs. So
	// EKCO keeps waiting while the node does not answer, and keeps the pod when EKCO ends.
	LosesNode bool `json:"loses_node,omitempty"`
	// Trial is set if the program reports the result of a change and then waits until [AnnotationConfirmed] on its pod
	// is "true". If the confirmation takes too long, the program undoes the change. The program must not cut off its node
	// before the report.
	Trial bool `json:"trial,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL; zero means 5 s.
	Grace journal.Duration `json:"grace,omitzero"`
}

// Writes reports whether the program can change anything on its host.
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
	// Host is the path on the host. At is the path in the pod.
	Host string `json:"host"`
	At   string `json:"at"`
	// Type is the hostPath type of Kubernetes, for example "Directory" or "DirectoryOrCreate". If the path has another
	// type, the pod does not start. If Type is empty, nothing is checked, and containerd creates a missing directory.
	Type string `json:"type,omitempty"`
	// Write lets the program change the path.
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
func (t Task) Longest() time.Duration { return t.start() + t.limit() + overduePeriod }

// Owner is the step that a task belongs to.
type Owner struct{ Action, Step string }

// key identifies the owner in a label, whose length is limited.
func (o Owner) key() string {
	sum := sha256.Sum256([]byte(o.Action + "\x00" + o.Step))
	return hex.EncodeToString(sum[:8])
}

// PodName returns the name of the task's pod.
func (t Task) PodName(owner Owner) string { return t.Name + "-" + owner.key() }
