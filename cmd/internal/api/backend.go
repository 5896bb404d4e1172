package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// These errors keep their identity across the socket: errors.Is gives the same answer in the client as in the server.
var (
	// ErrRefused means that policy refuses the request; the message has the reason.
	ErrRefused = errors.New("refused")
	// ErrNotFound means that the thing, action or pause does not exist; the message lists similar names.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means that the request is invalid; the message describes a valid one.
	ErrInvalid = errors.New("invalid request")
)

// Backend is the interface of the socket. The ring implements it.
type Backend interface {
	// Status returns the present state.
	Status(ctx context.Context) (Status, error)
	// Events yields the events that match. With follow it then waits for more events until ctx ends.
	Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error]
	// Explain returns what a request would do: its plan, and the present result of each preflight. It changes and
	// records nothing.
	Explain(ctx context.Context, request fsm.Request) (Explanation, error)
	// ExplainThing explains the state of things, and why EKCO does not act on them.
	ExplainThing(ctx context.Context, request ThingRequest) ([]ThingExplanation, error)
	// Request requests an action. It returns as soon as the request is on disk; Events shows the progress.
	Request(ctx context.Context, request fsm.Request) (Admission, error)
	// Do carries out a command, such as a pause. It returns as soon as the events of the command are on disk.
	Do(ctx context.Context, command Command) error
	// Export writes the matching events as gzip-compressed NDJSON.
	Export(ctx context.Context, w io.Writer, query journal.Query) error
	// Import reads an export. from describes the origin of the export, and is recorded.
	Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error)
	// Verify checks the whole journal while it is in use.
	Verify(ctx context.Context) (VerifyResult, error)
}

// Admission is the answer to a request.
type Admission struct {
	// Action is the id of the action.
	Action string `json:"action,omitempty"`
	// Resumed is true if the action was already open.
	Resumed bool `json:"resumed,omitempty"`
	// AlreadyDone is true if there is nothing to do; Message has the reason.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
	// FromSeq is the sequence number after which the action's events begin.
	FromSeq uint64 `json:"from_seq"`
}

// Explanation describes a plan that EKCO does not carry out.
type Explanation struct {
	Kind    journal.ActionKind `json:"kind"`
	Subject journal.Subject    `json:"subject"`
	Plan    journal.Plan       `json:"plan"`
	// Costs lists for persons what the action would remove or change, one item per line.
	Costs  []string      `json:"costs,omitempty"`
	Checks []CheckResult `json:"checks"`
	// Resumes is the id of the open action that the request would join.
	Resumes string `json:"resumes,omitempty"`
	// AlreadyDone is true if there is nothing to do; Message has the reason.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
}

// CheckResult is the present result of one preflight.
type CheckResult struct {
	Preflight string              `json:"preflight"`
	Verdict   actions.VerdictKind `json:"verdict"`
	Reason    string              `json:"reason,omitempty"`
	// Key identifies the reason. The answer to a warning has the same key.
	Key string `json:"key,omitempty"`
}

// Status has all data that `ekco status` shows.
//
// The JSON has every key, even for an empty value.
type Status struct {
	// Verdict and Problems are set by [Judge].
	Verdict  Overall   `json:"verdict"`
	Problems []Problem `json:"problems"`
	Now      time.Time `json:"now"`
	// AsOf is the time of the status if no process observes the cluster now.
	AsOf time.Time `json:"as_of"`
	// Starting is set until the answering process has listed the cluster's nodes.
	Starting *Starting      `json:"starting"`
	Operator OperatorStatus `json:"operator"`
	Journal  JournalStatus  `json:"journal"`
	API      fsm.APIState   `json:"api"`
	Clock    ClockStatus    `json:"clock"`
	Nodes    []NodeStatus   `json:"nodes"`
	// Things has all things except nodes.
	Things []ThingStatus `json:"things"`
	// Actions has the open actions, oldest first.
	Actions []journal.ActionRecord `json:"actions"`
	// Unrecorded has results of open actions, by id, that could not be recorded. It is for persons.
	Unrecorded map[string]string `json:"unrecorded"`
	// Progress has the last progress that steps reported, by action and step. It is not in the journal.
	Progress map[string]map[string]actions.Progress `json:"progress"`
	Refusals []fsm.Refusal                          `json:"refusals"`
	// Next lists the actions that the operator will begin automatically, and what prevents them. It is empty if no
	// operator answers.
	Next []fsm.Upcoming `json:"next"`
	// Pauses has the pauses by name. The name is a node's name, or machine/name for other things, such as "lamp/hall".
	// "" is the pause of everything.
	Pauses map[string]fsm.PauseState `json:"pauses"`
	// Defects lists the events that could not be folded.
	Defects []string `json:"defects"`
	// Mirror is the reason why the mirror in the cluster lacks the open actions, or "".
	Mirror string `json:"mirror"`
	// NotMirrored has the ids of the open actions that the mirror lacks.
	NotMirrored []string `json:"not_mirrored"`
	// Absent lists what is missing, such as a permission, and configured tasks that EKCO does not do.
	Absent []string `json:"absent"`
}

// Starting describes the progress of a process that has just started.
type Starting struct {
	// Since is when the process started.
	Since time.Time `json:"since"`
	// To is what the process tries to do. Error is the error of the last attempt.
	To    string `json:"to"`
	Error string `json:"error"`
}

// ClockStatus describes present or past problems of the clock of EKCO's machine.
type ClockStatus struct {
	// APIAhead is how far the clock of the Kubernetes API was ahead at EKCO's start, if the clocks were far apart.
	APIAhead journal.Duration `json:"api_ahead"`
	// JumpedAt is when the clock last jumped. Jump is by how much it jumped.
	JumpedAt time.Time        `json:"jumped_at"`
	Jump     journal.Duration `json:"jump"`
}

// OperatorStatus describes the process that answers. If no process answers, it describes the last one that saw the
// cluster.
type OperatorStatus struct {
	fsm.OperatorState
	// Running is true if an operator answers.
	Running bool `json:"running"`
	// PID is the id of the process that answers. That is a command if no operator runs and the command does the work.
	PID int `json:"pid"`
}

// JournalStatus describes the journal: its position, size and problems.
type JournalStatus struct {
	journal.Stat
	// SafeMode is set if damage caused safe mode, and Outdated if the loss of the newest events caused it. Both may be
	// set.
	SafeMode *journal.JournalSalvaged `json:"safe_mode"`
	Outdated *journal.JournalOutdated `json:"outdated"`
	// SafeModeSince is when EKCO found the first of these two problems.
	SafeModeSince time.Time `json:"safe_mode_since"`
	// LostFrom is the time of the last remaining event, or zero if unknown. The journal lacks the events between this
	// time and SafeModeSince.
	LostFrom time.Time `json:"lost_from"`
	// Adopted describes the last adoption of a mirror that an EKCO with another journal had written.
	Adopted   *journal.JournalAdopted `json:"adopted"`
	AdoptedAt time.Time               `json:"adopted_at"`
	// Replaced describes the file that this journal replaced.
	Replaced   *journal.JournalReplaced `json:"replaced"`
	ReplacedAt time.Time                `json:"replaced_at"`
	// Unopened is set while the journal cannot be opened and EKCO only observes. Of the other fields only Path is then
	// known.
	Unopened *UnopenedJournal `json:"unopened"`
	// Writable reports whether the last append succeeded. If not, Error is its error, and UnwritableSince is the time
	// of the first failure, if known.
	Writable        bool      `json:"writable"`
	Error           string    `json:"error"`
	UnwritableSince time.Time `json:"unwritable_since"`
	// FileReplaced is true if the journal cannot be written because another program deleted or replaced its file.
	FileReplaced bool `json:"file_replaced"`
}

// UnopenedJournal describes a journal that is not open: since when, why, and when EKCO retries.
type UnopenedJournal struct {
	Since   time.Time `json:"since"`
	Problem string    `json:"problem"`
	NextTry time.Time `json:"next_try"`
}

// NodeStatus is the status of one node.
type NodeStatus struct {
	Name string           `json:"name"`
	UID  string           `json:"uid"`
	Role journal.NodeRole `json:"role"`
	// InternalIP is the node's address, or "" if it has none.
	InternalIP string            `json:"internal_ip"`
	State      journal.NodeState `json:"state"`
	Since      time.Time         `json:"since"`
	// Ready reports whether the kubelet and the network of the node are ready. A cordoned node can be ready.
	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// Taints lists the taints that keep pods away from an existing node.
	Taints           []journal.Taint `json:"taints"`
	Excluded         bool            `json:"excluded"`
	TerminatingPods  int             `json:"terminating_pods"`
	UnreachableSince time.Time       `json:"unreachable_since"`
	// Normal is true if the node is ready, has nothing that an administrator should know, and nothing is under way.
	Normal bool `json:"normal"`
	// Flapping is true while the node is lost again and again; UnreachableSince is zero then.
	Flapping bool `json:"flapping"`
}

// ThingStatus is the status of a thing other than a node.
type ThingStatus struct {
	Machine string        `json:"machine"`
	Name    string        `json:"name"`
	UID     string        `json:"uid"`
	State   journal.State `json:"state"`
	Since   time.Time     `json:"since"`
	// Gone is true if the thing no longer exists.
	Gone bool `json:"gone"`
	// Normal is true if the thing needs no attention, and nothing about it is under way.
	Normal bool `json:"normal"`
	// NeedsPerson is the reason why the thing needs a person. Advice is what the person can do. Both may be empty.
	NeedsPerson string `json:"needs_person"`
	Advice      string `json:"advice"`
	// Details has further lines about the thing, for persons.
	Details []string `json:"details"`
	// Facts has the facts that the machine provides for programs.
	Facts json.RawMessage `json:"facts"`
}

// VerifyResult is the result of a check of the journal.
type VerifyResult struct {
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	// NotAJournal is true if the file never was a journal of EKCO.
	NotAJournal bool   `json:"not_a_journal,omitempty"`
	Events      uint64 `json:"events"`
	FirstSeq    uint64 `json:"first_seq"`
	LastSeq     uint64 `json:"last_seq"`
	// Head is the last event with its hash, which depends on all events before it. It is zero if the chain is broken.
	Head journal.Position `json:"head,omitzero"`
	// Expected is the event that was compared and found unchanged. It is zero without a comparison.
	Expected journal.Position `json:"expected,omitzero"`
	// Losses lists the recorded losses of events, oldest first.
	Losses []Loss `json:"losses"`
	// Unread is the reason if the events could not be read, so that Losses is unknown.
	Unread string `json:"unread,omitempty"`
}

// Loss describes one loss of events.
type Loss struct {
	// Type, Seq and At belong to the event that records the loss.
	Type journal.Type `json:"type"`
	Seq  uint64       `json:"seq"`
	At   time.Time    `json:"at"`
	// After is the number of the last event that was kept, and From is its time. They are zero if unknown.
	After uint64    `json:"after"`
	From  time.Time `json:"from,omitzero"`
	// AtLeast is the number of events that are certainly lost. DamagedFile may still have them.
	AtLeast     uint64 `json:"at_least"`
	DamagedFile string `json:"damaged_file,omitempty"`
	// EarlierFiles were set aside at earlier losses, about which the journal no longer has the events.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}
