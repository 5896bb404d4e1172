package journal

import "time"

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
	// ClusterUID is the UID of namespace kube-system, empty when it may not be
	// read. A journal belongs to the first cluster it saw.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Settings are the policy keys in force, by config key. Never secrets.
	Settings map[string]string `json:"settings,omitempty"`
}

// OperatorStopped says why the operator ended in order.
type OperatorStopped struct {
	Reason string `json:"reason"`
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
	Hostname   string `json:"hostname,omitempty"`
	// CreatedAt is the object's creation time.
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// NodeObserved carries a Node's facts. The subject holds its name and UID.
type NodeObserved struct {
	NodeFacts
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
}

// PodGone says that a pod seen terminating no longer exists, or that its node
// is no longer watched because it answers again.
type PodGone struct {
	NodeUID string `json:"node_uid"`
}

// NodeState is a state of the node machine; package fsm owns its transitions.
type NodeState string

// NodeTransitioned is a step of the node machine, decided from facts.
type NodeTransitioned struct {
	From NodeState `json:"from"`
	To   NodeState `json:"to"`
	// Event is the machine's event that led from From to To.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is the time the new state's durations count from; for an unknown
	// node the taint's time. Zero means the event's own time.
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

// PauseSet stops EKCO from starting actions: on one node when the subject is
// a Node, else on all.
type PauseSet struct {
	Reason string `json:"reason"`
	// Until is when the pause ends by itself; zero means never.
	Until time.Time `json:"until,omitzero"`
}

// PauseCleared ends a pause of the same subject.
type PauseCleared struct {
	Reason string `json:"reason"`
}
