package journal

import (
	"encoding/json"
	"time"
)

// JournalCreated is the first event of every journal.
type JournalCreated struct {
	// Format is the number of the on-disk format; see README.md.
	Format int `json:"format"`
	// JournalID is a random id that distinguishes two journals of one cluster.
	JournalID string `json:"journal_id"`
}

// JournalSalvaged records that the journal was damaged and what was lost. Safe mode begins with this event.
type JournalSalvaged struct {
	// DamagedFile is the new name of the damaged file.
	DamagedFile string `json:"damaged_file"`
	// Problem is the error of the verification.
	Problem string `json:"problem"`
	// Recovered is the number of readable events at the start of the file. LastSeq is the number of the last of them.
	Recovered uint64 `json:"recovered"`
	LastSeq   uint64 `json:"last_seq"`
	// LostAtLeast is how many events are certainly lost. More may be lost if the end of the file is unreadable.
	LostAtLeast uint64 `json:"lost_at_least"`
	// EarlierFiles are files that were damaged earlier, if the JournalSalvaged events about them are lost now.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}

// JournalOutdated says that the file lost its newest events, for example because an older copy was restored, or that
// the whole file is gone. EKCO knows this because the mirror in the cluster has newer events. Safe mode begins with
// this event.
type JournalOutdated struct {
	// Gone is the id of the journal that EKCO wrote on this machine before, if that journal's file is gone.
	Gone string `json:"gone,omitempty"`
	// LastSeq is the number of the file's last event. It is 0 if the file is gone, or if an EKCO appended other events
	// to it after the loss, because EKCO then does not know which events the file kept.
	LastSeq uint64 `json:"last_seq"`
	// Mirrored is the last event that the mirror includes. MirroredAt is when the mirror was written.
	Mirrored   Position  `json:"mirrored"`
	MirroredAt time.Time `json:"mirrored_at,omitzero"`
}

// JournalAdopted says that EKCO took over state from a mirror that this journal lacked. The events right before this
// one have the open actions and pauses. The fields of this one have the rest.
type JournalAdopted struct {
	// JournalID is the journal whose state is in the mirror. Mirrored is the last event of that journal that the mirror
	// includes. MirroredAt is when the mirror was written.
	JournalID  string    `json:"journal_id"`
	Mirrored   Position  `json:"mirrored,omitzero"`
	MirroredAt time.Time `json:"mirrored_at,omitzero"`
	// Actions is the number of open actions that EKCO took over or ended. Pauses is the number of pauses.
	Actions int `json:"actions,omitempty"`
	Pauses  int `json:"pauses,omitempty"`
	// EndedAt and Contests have the same content as in [Carried].
	EndedAt  map[ActionKind]time.Time   `json:"ended_at,omitempty"`
	Contests map[string]json.RawMessage `json:"contests,omitempty"`
}

// JournalReplaced says that EKCO created this journal in the place of a file that is not the journal of this cluster.
type JournalReplaced struct {
	// File is the new name of the file.
	File string `json:"file"`
	// Problem says why EKCO could not use the file.
	Problem string `json:"problem"`
	// JournalID, ClusterUID, LastSeq and LastTime describe the journal in the file, if the file is a journal.
	JournalID  string    `json:"journal_id,omitempty"`
	ClusterUID string    `json:"cluster_uid,omitempty"`
	LastSeq    uint64    `json:"last_seq,omitempty"`
	LastTime   time.Time `json:"last_time,omitzero"`
}

// JournalAccepted ends safe mode.
type JournalAccepted struct {
	Reason string `json:"reason,omitempty"`
}

// JournalExported records that retention moved events FirstSeq to LastSeq into a file.
type JournalExported struct {
	File     string `json:"file"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	// Events is the number of events in the export, which has all events of the range.
	Events uint64 `json:"events"`
	// Kept is how many events of the range also stayed in the journal, because their action is open or the state needs
	// them.
	Kept uint64 `json:"kept"`
}

// JournalPruned says that EKCO removes an old file next to the journal. EKCO appends the event before the removal.
type JournalPruned struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Written is when the file was written.
	Written time.Time `json:"written"`
}

// JournalImported records that the events of an export were written into the journal again.
type JournalImported struct {
	File     string `json:"file"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Events   uint64 `json:"events"`
}

// OperatorStarted describes a process that starts to observe the cluster, and its settings.
type OperatorStarted struct {
	Version string `json:"version"`
	// Host is the name of EKCO's machine: in a pod the name of the node, if the pod has it.
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Command is set if the process is not an operator but a command that a person runs without an operator, for
	// example "purge-node worker-2".
	Command string `json:"command,omitempty"`
	// ClusterUID is the UID of namespace kube-system; empty if EKCO has no permission to read the namespace.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Settings are the configuration keys and values on which decisions depend. They contain no secrets.
	Settings map[string]string `json:"settings,omitempty"`
	// BootID identifies the boot of EKCO's machine. Uptime is the monotonic clock since that boot. If two starts have
	// the same BootID, the clock shows how long EKCO did not run, even if the wall clock was set.
	BootID string   `json:"boot_id,omitempty"`
	Uptime Duration `json:"uptime,omitzero"`
	// ClockSkew is how far the API server's clock is ahead of EKCO's; nil if unknown.
	ClockSkew *Duration `json:"clock_skew,omitempty"`
}

// OperatorStopped says that the operator stopped on request, and why.
type OperatorStopped struct {
	Reason string `json:"reason"`
}

// ClockJumped says that the clock of EKCO's machine was set, or that the machine slept. The time of the event is
// already by the new clock.
type ClockJumped struct {
	// By is how much further the clock went than the time that has passed; negative if the clock was set back.
	By Duration `json:"by"`
}

// APILost says that the Kubernetes API stopped answering.
type APILost struct {
	// Error is the error of the request that noticed the outage.
	Error string `json:"error"`
}

// APIRecovered ends an API outage.
type APIRecovered struct {
	// LostAt is when EKCO noticed the outage.
	LostAt time.Time `json:"lost_at"`
}

// NodeRole says whether a node runs the control plane.
type NodeRole string

// The roles. A node is a primary if it has the label node-role.kubernetes.io/master or
// node-role.kubernetes.io/control-plane, with any value.
const (
	RolePrimary NodeRole = "primary"
	RoleWorker  NodeRole = "worker"
)

// Taint has the fields of a Node's taint that decisions use.
type Taint struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	// TimeAdded is zero if the taint has no time in the API.
	TimeAdded time.Time `json:"time_added,omitzero"`
}

// NodeFacts are the facts about a Node. EKCO records them only when one of them changes.
type NodeFacts struct {
	Role NodeRole `json:"role"`
	// Taints are the node's taints with a [IsRecordedTaint] key, sorted by key, then by effect.
	Taints []Taint `json:"taints,omitempty"`
	// Excluded is set by the label ekco.kurl.sh/exclude, unless its value is "false".
	Excluded   bool   `json:"excluded,omitempty"`
	InternalIP string `json:"internal_ip,omitempty"`
	// Hostname is the hostname that binds pods to the node's machine: the value of the label kubernetes.io/hostname or,
	// without that label, the machine's own hostname.
	Hostname string `json:"hostname,omitempty"`
	// Labels are the node's labels whose keys are in the configuration.
	Labels map[string]string `json:"labels,omitempty"`
	// CreatedAt is the object's creation time.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Flapping is set while the node is lost and ready in quick alternation. EKCO then records only the first loss,
	// until the node has been ready, or lost, for long enough.
	Flapping bool `json:"flapping,omitempty"`
}

// NodeObserved has new facts about a Node. The subject of the event has the Node's name and UID.
type NodeObserved struct {
	NodeFacts
	// Flaps is how often the node was lost while it was flapping. It is set in the event that ends the flapping.
	Flaps int `json:"flaps,omitempty"`
	// UnreachableFor is for how long the node had been lost at the end of the flapping.
	UnreachableFor Duration `json:"unreachable_for,omitzero"`
}

// NodeGone says that a Node object no longer exists.
type NodeGone struct {
	// Reason says how EKCO knows: "deleted", "replaced by uid …" or "absent at start".
	Reason string `json:"reason"`
}

// PodTerminating says that a pod on a lost node has a deletion timestamp.
type PodTerminating struct {
	NodeUID string `json:"node_uid"`
	// DeletionTimestamp is the value in the API: the time of the deletion request plus the grace period.
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// GracePeriod is the grace period of the deletion. Events of earlier versions do not have it.
	GracePeriod *Duration `json:"grace_period,omitempty"`
}

// PodGone says that a terminating pod no longer exists, or that EKCO no longer watches the pod because its node answers
// again.
type PodGone struct {
	NodeUID string `json:"node_uid"`
}

// State is a state of a machine; package fsm defines the transitions.
type State string

// NodeState is a state of the node machine.
type NodeState = State

// NodeTransitioned is a transition of the node machine.
type NodeTransitioned struct {
	From NodeState `json:"from"`
	To   NodeState `json:"to"`
	// Event is the name of the transition in the machine's table.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is when the new state began; for an unknown node, when EKCO saw that it was lost. Zero means the time of
	// this event.
	Since time.Time `json:"since,omitzero"`
}

// PolicyRefused says that EKCO wants an action on the subject, and a rule of policy forbids the action.
type PolicyRefused struct {
	// Kind is the kind of the refused action.
	Kind ActionKind `json:"kind"`
	// Rule names the rule, for example "StormBrake".
	Rule string `json:"rule"`
	// Reason says, for people, what would end the refusal.
	Reason string `json:"reason"`
}

// PolicyLifted says that the rule no longer forbids the action.
type PolicyLifted struct {
	Kind ActionKind `json:"kind"`
	Rule string     `json:"rule"`
}

// PauseSet begins a pause: EKCO starts no actions automatically on the object with the subject's kind and name, or on
// any object if the subject is the cluster.
type PauseSet struct {
	Reason string `json:"reason"`
	// Until is when the pause ends automatically; zero means never.
	Until time.Time `json:"until,omitzero"`
	// Origin is set if the pause was first set in another journal, and EKCO took it over from the mirror.
	Origin *PauseOrigin `json:"origin,omitempty"`
}

// PauseOrigin identifies the event in another journal that set a pause.
type PauseOrigin struct {
	JournalID string    `json:"journal_id"`
	Seq       uint64    `json:"seq"`
	At        time.Time `json:"at"`
}

// PauseCleared ends the pause of the subject.
type PauseCleared struct {
	Reason string `json:"reason"`
}
