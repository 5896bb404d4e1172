package journal

import (
	"encoding/json"
	"time"
)

// JournalCreated is the first event of every journal.
type JournalCreated struct {
	// Format is the number of the on-disk format; see README.md.
	Format int `json:"format"`
	// JournalID is a random id that tells two journals of one cluster apart.
	JournalID string `json:"journal_id"`
}

// JournalSalvaged says what a damaged journal cost. Safe mode begins with it.
type JournalSalvaged struct {
	// DamagedFile is where the damaged file was set aside.
	DamagedFile string `json:"damaged_file"`
	// Problem is what verification found.
	Problem string `json:"problem"`
	// Recovered is the number of events in the readable prefix, LastSeq the
	// sequence number of the last of them.
	Recovered uint64 `json:"recovered"`
	LastSeq   uint64 `json:"last_seq"`
	// LostAtLeast is how many events are known to be lost; the true number can
	// be higher, when the end of the file is unreadable.
	LostAtLeast uint64 `json:"lost_at_least"`
	// EarlierFiles were set aside at earlier damage, of which the readable prefix
	// says nothing: the record of it is among what is lost now.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}

// JournalOutdated says that the file lost its newest events, for example
// because an older copy of it was put back: its mirror in the cluster knows of
// more. Safe mode begins with it.
type JournalOutdated struct {
	// LastSeq is the last event that the file is known to have kept: the file's
	// last one, or, where the file went on without the lost events, 0, because
	// nobody knows since when.
	LastSeq uint64 `json:"last_seq"`
	// Mirrored is where the journal had come to when the mirror was written, at
	// MirroredAt.
	Mirrored   Position  `json:"mirrored"`
	MirroredAt time.Time `json:"mirrored_at,omitzero"`
}

// JournalAdopted says that what a mirror held was taken over, where this journal lacked it:
// open actions and pauses, by the events before this one, and what else decides, which it carries.
type JournalAdopted struct {
	// JournalID is the journal whose mirror it was, which had come to Mirrored when the mirror
	// was written, at MirroredAt.
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

// JournalReplaced says that this journal was begun in the place of a file that
// is not the journal of this cluster.
type JournalReplaced struct {
	// File is where that file was set aside.
	File string `json:"file"`
	// Problem is why it could not be used.
	Problem string `json:"problem"`
	// JournalID, ClusterUID, LastSeq and LastTime are of the journal in it, if
	// there is one.
	JournalID  string    `json:"journal_id,omitempty"`
	ClusterUID string    `json:"cluster_uid,omitempty"`
	LastSeq    uint64    `json:"last_seq,omitempty"`
	LastTime   time.Time `json:"last_time,omitzero"`
}

// JournalAccepted ends safe mode.
type JournalAccepted struct {
	Reason string `json:"reason,omitempty"`
}

// JournalExported records that retention moved events FirstSeq to LastSeq out
// of the journal.
type JournalExported struct {
	File     string `json:"file"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	// Events is how many events the export holds: all that the journal had in
	// that range.
	Events uint64 `json:"events"`
	// Kept is how many of them also stayed, because their action is open or the
	// state needs them.
	Kept uint64 `json:"kept"`
}

// JournalPruned records that an old file beside the journal is removed: the event comes first.
type JournalPruned struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Written is when the file was written.
	Written time.Time `json:"written"`
}

// JournalImported records that the events of an export were written back.
type JournalImported struct {
	File     string `json:"file"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Events   uint64 `json:"events"`
}

// OperatorStarted says who began to observe, and under which settings.
type OperatorStarted struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	DryRun  bool   `json:"dry_run,omitempty"`
	// Command is the command that works because no operator runs, for example
	// "purge-node worker-2"; empty for an operator.
	Command string `json:"command,omitempty"`
	// ClusterUID is the UID of namespace kube-system, empty when it may not be
	// read. A journal belongs to the first cluster it saw.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Settings are the policy keys in force, by config key. Never secrets.
	Settings map[string]string `json:"settings,omitempty"`
	// BootID names the boot of the machine that EKCO runs on, and Uptime is what
	// that boot's monotonic clock showed: within one boot they say how long EKCO
	// was away, whatever was done to the clock.
	BootID string   `json:"boot_id,omitempty"`
	Uptime Duration `json:"uptime,omitzero"`
	// ClockSkew is how far the API server's clock is ahead of EKCO's; nil when
	// that is not known.
	ClockSkew *Duration `json:"clock_skew,omitempty"`
}

// OperatorStopped says why the operator ended in order.
type OperatorStopped struct {
	Reason string `json:"reason"`
}

// ClockJumped says that the clock of EKCO's machine was moved, or that the
// machine slept. The event's time is the first one by the clock as it is now.
type ClockJumped struct {
	// By is how far the clock went ahead of the time that has passed; less than
	// zero when it was set back.
	By Duration `json:"by"`
}

// APILost says how the API server failed to answer.
type APILost struct {
	Error string `json:"error"`
}

// APIRecovered ends an API outage.
type APIRecovered struct {
	// LostAt is when the outage was noticed.
	LostAt time.Time `json:"lost_at"`
}

// NodeRole is what a node is to kubeadm.
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
	// TimeAdded is zero when the API gives none.
	TimeAdded time.Time `json:"time_added,omitzero"`
}

// NodeFacts is what EKCO knows about a Node. Only a change of these facts is
// worth an event.
type NodeFacts struct {
	Role NodeRole `json:"role"`
	// Taints are those of keys node.kubernetes.io/{not-ready, unreachable,
	// network-unavailable, unschedulable}, sorted by key, then effect.
	Taints []Taint `json:"taints,omitempty"`
	// Excluded is set by the label ekco.kurl.sh/exclude, unless its value is
	// "false".
	Excluded   bool   `json:"excluded,omitempty"`
	InternalIP string `json:"internal_ip,omitempty"`
	// Hostname is by what pods are bound to its machine: the label kubernetes.io/hostname,
	// or what the machine calls itself where there is none.
	Hostname string `json:"hostname,omitempty"`
	// Labels are the values of those labels that the configuration names.
	Labels map[string]string `json:"labels,omitempty"`
	// CreatedAt is the object's creation time.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Flapping is set while the node is lost and comes back again and again. Only
	// that it was lost is told then, and no return or further loss, until one of
	// them lasts: since when it is lost does not count before.
	Flapping bool `json:"flapping,omitempty"`
}

// NodeObserved carries a Node's facts. The subject holds its name and UID.
type NodeObserved struct {
	NodeFacts
	// Flaps is how often the node was lost while it was flapping. It is set when
	// that has ended.
	Flaps int `json:"flaps,omitempty"`
	// UnreachableFor is how long the loss has lasted by then.
	UnreachableFor Duration `json:"unreachable_for,omitzero"`
}

// NodeGone says that a Node object no longer exists.
type NodeGone struct {
	// Reason says how EKCO came to know: "deleted", "replaced by uid …" or
	// "absent at start".
	Reason string `json:"reason"`
}

// PodTerminating says that a pod of an unknown node has been asked to end.
type PodTerminating struct {
	NodeUID string `json:"node_uid"`
	// DeletionTimestamp is the API's: the time of the request plus the grace
	// period.
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// GracePeriod is the pod's own time to end, from the request on. Events of
	// old versions do not have it.
	GracePeriod *Duration `json:"grace_period,omitempty"`
}

// PodGone says that a pod seen terminating no longer exists, or that its node
// is no longer watched because it answers again.
type PodGone struct {
	NodeUID string `json:"node_uid"`
}

// State is a state of a machine; package fsm owns the transitions.
type State string

// NodeState is a state of the node machine.
type NodeState = State

// NodeTransitioned is a step of the node machine, decided from facts.
type NodeTransitioned struct {
	From NodeState `json:"from"`
	To   NodeState `json:"to"`
	// Event is the machine's event that led from From to To.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is the time the new state's durations count from; for an unknown
	// node when EKCO saw it lost. Zero means the event's own time.
	Since time.Time `json:"since,omitzero"`
}

// PolicyRefused says that EKCO would act on the subject and may not.
type PolicyRefused struct {
	// Kind is the action that is refused, ActionClearNode or ActionPurgeNode.
	Kind ActionKind `json:"kind"`
	// Rule names the check, for example "StormBrake".
	Rule string `json:"rule"`
	// Reason is for people and says what would lift the refusal.
	Reason string `json:"reason"`
}

// PolicyLifted withdraws a refusal.
type PolicyLifted struct {
	Kind ActionKind `json:"kind"`
	Rule string     `json:"rule"`
}

// PauseSet stops EKCO from starting actions: about what has the subject's kind and name,
// or about everything when the subject is the cluster.
type PauseSet struct {
	Reason string `json:"reason"`
	// Until is when the pause ends by itself; zero means never.
	Until time.Time `json:"until,omitzero"`
	// Origin is set when another journal has the word of the person: it was taken over from the mirror.
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
