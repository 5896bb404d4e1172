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

// JournalSalvaged records the loss by a damaged journal. Safe mode begins with it.
type JournalSalvaged struct {
	// DamagedFile is the new name of the damaged file.
	DamagedFile string `json:"damaged_file"`
	// Problem is what verification found.
	Problem string `json:"problem"`
	// Recovered is the number of events in the readable prefix, LastSeq the last of them.
	Recovered uint64 `json:"recovered"`
	LastSeq   uint64 `json:"last_seq"`
	// LostAtLeast is how many events are certainly lost; if the end of the file is unreadable, more can be lost.
	LostAtLeast uint64 `json:"lost_at_least"`
	// EarlierFiles were renamed at earlier damages whose events are lost now.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}

// JournalOutdated says that the file lost its newest events, for example because an older copy was restored: its
// mirror in the cluster has more. Safe mode begins with it.
type JournalOutdated struct {
	// LastSeq is the last event that the file certainly kept: its last one. It is 0 if the file continued without the
	// lost events, since it is unknown where that began.
	LastSeq uint64 `json:"last_seq"`
	// Mirrored is the last event in the mirror, which was written at MirroredAt.
	Mirrored   Position  `json:"mirrored"`
	MirroredAt time.Time `json:"mirrored_at,omitzero"`
}

// JournalAdopted says that EKCO took over from a mirror what this journal lacked: open actions and pauses, by the
// events before this one, and further state in its fields.
type JournalAdopted struct {
	// JournalID is the journal of that mirror, Mirrored its last event in the mirror, which was written at
	// MirroredAt.
	JournalID  string    `json:"journal_id"`
	Mirrored   Position  `json:"mirrored,omitzero"`
	MirroredAt time.Time `json:"mirrored_at,omitzero"`
	// Actions is how many open actions were taken over or ended, Pauses how many pauses.
	Actions int `json:"actions,omitempty"`
	Pauses  int `json:"pauses,omitempty"`
	// EndedAt and Contests are those of [Carried].
	EndedAt  map[ActionKind]time.Time   `json:"ended_at,omitempty"`
	Contests map[string]json.RawMessage `json:"contests,omitempty"`
}

// JournalReplaced says that this journal replaced a file that is not the journal of this cluster.
type JournalReplaced struct {
	// File is the new name of that file.
	File string `json:"file"`
	// Problem says why it could not be used.
	Problem string `json:"problem"`
	// JournalID, ClusterUID, LastSeq and LastTime are of the journal in that file, if it is one.
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
	// Events is how many events the export has: all of that range.
	Events uint64 `json:"events"`
	// Kept is how many of them also stayed in the journal, because their action is open or the state needs them.
	Kept uint64 `json:"kept"`
}

// JournalPruned records the removal of an old file next to the journal: the event comes first.
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

// OperatorStarted describes the process that begins to observe, and its settings.
type OperatorStarted struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	DryRun  bool   `json:"dry_run,omitempty"`
	// Command is the command that works because no operator runs, for example "purge-node worker-2"; empty for an
	// operator.
	Command string `json:"command,omitempty"`
	// ClusterUID is the UID of namespace kube-system, empty if EKCO may not read it. A journal belongs to the first
	// cluster it saw.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Settings are the policy keys and values in force. Never secrets.
	Settings map[string]string `json:"settings,omitempty"`
	// BootID identifies the boot of EKCO's machine, and Uptime is the monotonic clock of that boot: within one boot
	// they say how long EKCO did not run, even if the clock was set.
	BootID string   `json:"boot_id,omitempty"`
	Uptime Duration `json:"uptime,omitzero"`
	// ClockSkew is how far the API server's clock is ahead of EKCO's; nil if unknown.
	ClockSkew *Duration `json:"clock_skew,omitempty"`
}

// OperatorStopped says why the operator stopped in order.
type OperatorStopped struct {
	Reason string `json:"reason"`
}

// ClockJumped says that the clock of EKCO's machine was set, or that the machine slept. The event has the new time.
type ClockJumped struct {
	// By is how far the clock went ahead of the elapsed time; below zero if it was set back.
	By Duration `json:"by"`
}

// APILost has the error of a request without an answer.
type APILost struct {
	Error string `json:"error"`
}

// APIRecovered ends an API outage.
type APIRecovered struct {
	// LostAt is when the outage was noticed.
	LostAt time.Time `json:"lost_at"`
}

// NodeRole is the role of a node for kubeadm.
type NodeRole string

// A node is a primary when it has the label node-role.kubernetes.io/master or
// node-role.kubernetes.io/control-plane, of any value.
const (
	RolePrimary NodeRole = "primary"
	RoleWorker  NodeRole = "worker"
)

// Taint is the part of a Node's taint that EKCO judges by.
type Taint struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	// TimeAdded is zero if the API has none.
	TimeAdded time.Time `json:"time_added,omitzero"`
}

// NodeFacts is what EKCO knows about a Node. Only a change of these facts is recorded.
type NodeFacts struct {
	Role NodeRole `json:"role"`
	// Taints are those of keys node.kubernetes.io/{not-ready, unreachable,
	// network-unavailable, unschedulable}, sorted by key, then effect.
	Taints []Taint `json:"taints,omitempty"`
	// Excluded is set by the label ekco.kurl.sh/exclude, unless its value is
	// "false".
	Excluded   bool   `json:"excluded,omitempty"`
	InternalIP string `json:"internal_ip,omitempty"`
	// Hostname is the one by which pods are bound to its machine: the label kubernetes.io/hostname, or the machine's
	// own hostname without that label.
	Hostname string `json:"hostname,omitempty"`
	// Labels are the values of the labels that the configuration names.
	Labels map[string]string `json:"labels,omitempty"`
	// CreatedAt is the object's creation time.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Flapping is set while the node becomes lost and ready again and again. Then only the first loss is recorded,
	// and no recovery or further loss, until one of them lasts: times of earlier losses do not count.
	Flapping bool `json:"flapping,omitempty"`
}

// NodeObserved has a Node's facts. The subject has its name and UID.
type NodeObserved struct {
	NodeFacts
	// Flaps is how often the node was lost while it was flapping. It is set at the end of that.
	Flaps int `json:"flaps,omitempty"`
	// UnreachableFor is how long the loss had lasted by then.
	UnreachableFor Duration `json:"unreachable_for,omitzero"`
}

// NodeGone says that a Node object no longer exists.
type NodeGone struct {
	// Reason says how EKCO knows: "deleted", "replaced by uid …" or "absent at start".
	Reason string `json:"reason"`
}

// PodTerminating says that a pod of an unknown node has a deletion timestamp.
type PodTerminating struct {
	NodeUID string `json:"node_uid"`
	// DeletionTimestamp is the API's: the time of the request plus the grace period.
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// GracePeriod is the pod's own grace period, from the request on. Events of old versions do not have it.
	GracePeriod *Duration `json:"grace_period,omitempty"`
}

// PodGone says that a terminating pod no longer exists, or that EKCO no longer watches its node because the node
// answers again.
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
	// Event is the machine's event that caused the transition.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is the begin of the new state's durations; for an unknown node when EKCO saw it lost. Zero means the
	// event's own time.
	Since time.Time `json:"since,omitzero"`
}

// PolicyRefused says that EKCO would act on the subject but may not.
type PolicyRefused struct {
	// Kind is the kind of the refused action.
	Kind ActionKind `json:"kind"`
	// Rule names the rule, for example "StormBrake".
	Rule string `json:"rule"`
	// Reason says, for people, what would end the refusal.
	Reason string `json:"reason"`
}

// PolicyLifted ends a refusal.
type PolicyLifted struct {
	Kind ActionKind `json:"kind"`
	Rule string     `json:"rule"`
}

// PauseSet stops EKCO from starting actions: for the subject's kind and name, or for everything if the subject is the
// cluster.
type PauseSet struct {
	Reason string `json:"reason"`
	// Until is when the pause ends automatically; zero means never.
	Until time.Time `json:"until,omitzero"`
	// Origin is set if the pause was set in another journal: EKCO took it over from the mirror.
	Origin *PauseOrigin `json:"origin,omitempty"`
}

// PauseOrigin is the event that set a pause.
type PauseOrigin struct {
	JournalID string    `json:"journal_id"`
	Seq       uint64    `json:"seq"`
	At        time.Time `json:"at"`
}

// PauseCleared ends a pause of the same subject.
type PauseCleared struct {
	Reason string `json:"reason"`
}
