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

// Errors that keep their identity across the socket: errors.Is gives the same answer for the client as on the server.
var (
	// ErrRefused: policy refuses the request; the message says why.
	ErrRefused = errors.New("refused")
	// ErrNotFound: there is no such thing, action or pause; the message lists similar names.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request is invalid; the message says what is expected.
	ErrInvalid = errors.New("invalid request")
)

// Backend is the API on the socket; the ring implements it.
type Backend interface {
	// Status returns the present state.
	Status(ctx context.Context) (Status, error)
	// Events yields the events that match; with follow set it then waits for
	// more until ctx ends.
	Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error]
	// Explain says what a request would do: its plan and the present result of each preflight. It changes nothing and
	// records nothing.
	Explain(ctx context.Context, request fsm.Request) (Explanation, error)
	// ExplainThing explains the state of things, and what stops EKCO from acting.
	ExplainThing(ctx context.Context, request ThingRequest) ([]ThingExplanation, error)
	// Request requests an action. It returns as soon as the action is on disk; Events shows its progress.
	Request(ctx context.Context, request fsm.Request) (Admission, error)
	// Do records a command.
	Do(ctx context.Context, command Command) error
	// Export writes the matching events as gzip'ed NDJSON.
	Export(ctx context.Context, w io.Writer, query journal.Query) error
	// Import reads an export. from is its origin, for the record.
	Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error)
	// Verify checks the whole journal while it is in use.
	Verify(ctx context.Context) (VerifyResult, error)
}

// Admission is the answer to a request.
type Admission struct {
	// Action is the id of the action.
	Action string `json:"action,omitempty"`
	// Resumed is set if the action was already open.
	Resumed bool `json:"resumed,omitempty"`
	// AlreadyDone is set if there is nothing to do; Message says why.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
	// FromSeq is where to read the action's events from (exclusive).
	FromSeq uint64 `json:"from_seq"`
}

// Explanation is a plan that EKCO does not carry out.
type Explanation struct {
	Kind    journal.ActionKind `json:"kind"`
	Subject journal.Subject    `json:"subject"`
	Plan    journal.Plan       `json:"plan"`
	// Costs say what the action removes or changes, a line each, for people.
	Costs  []string      `json:"costs,omitempty"`
	Checks []CheckResult `json:"checks"`
	// Resumes is the id of the open action that the request would join.
	Resumes string `json:"resumes,omitempty"`
	// AlreadyDone is set if there is nothing to do; Message says why.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
}

// CheckResult is the present result of a preflight.
type CheckResult struct {
	Preflight string              `json:"preflight"`
	Verdict   actions.VerdictKind `json:"verdict"`
	Reason    string              `json:"reason,omitempty"`
	// Key identifies the reason; the answer to a warning repeats it.
	Key string `json:"key,omitempty"`
}

// Status is everything that `ekco status` shows.
//
// Programs find every key, even with an empty value.
type Status struct {
	// Verdict and Problems are filled in by [Judge].
	Verdict  Overall   `json:"verdict"`
	Problems []Problem `json:"problems"`
	Now      time.Time `json:"now"`
	// AsOf is set if nothing observes the cluster now: then the status is of that time.
	AsOf time.Time `json:"as_of"`
	// Starting is set until the process that answers has seen the cluster.
	Starting *Starting      `json:"starting"`
	Operator OperatorStatus `json:"operator"`
	Journal  JournalStatus  `json:"journal"`
	API      fsm.APIState   `json:"api"`
	Clock    ClockStatus    `json:"clock"`
	Nodes    []NodeStatus   `json:"nodes"`
	// Things has all things but nodes.
	Things []ThingStatus `json:"things"`
	// Actions has the open actions, oldest first.
	Actions []journal.ActionRecord `json:"actions"`
	// Unrecorded has the results of open actions, by id, that could not be recorded; for people.
	Unrecorded map[string]string `json:"unrecorded"`
	// Progress is the last reported progress of steps, by action and step. It is in no journal.
	Progress map[string]map[string]actions.Progress `json:"progress"`
	Refusals []fsm.Refusal                          `json:"refusals"`
	// Next is what the operator will begin automatically, and what prevents that. It is empty if no operator answers.
	Next []fsm.Upcoming `json:"next"`
	// Pauses has the pauses by name: a node's name, or machine and name for other things, like "lamp/hall"; "" pauses
	// everything.
	Pauses map[string]fsm.PauseState `json:"pauses"`
	// Defects are events that could not be folded.
	Defects []string `json:"defects"`
	// Mirror says why the open actions are not in the mirror in the cluster; empty if they are.
	Mirror string `json:"mirror"`
	// NotMirrored has the ids of the open actions that the mirror lacks.
	NotMirrored []string `json:"not_mirrored"`
	// Absent lists what EKCO lacks, for example a permission, and what it does not do although it is switched on.
	Absent []string `json:"absent"`
}

// Starting is the progress of a process that has just started.
type Starting struct {
	// Since is when it started.
	Since time.Time `json:"since"`
	// To is what it tries to do, Error the error of the last attempt.
	To    string `json:"to"`
	Error string `json:"error"`
}

// ClockStatus says what is or was wrong with the clock of EKCO's machine.
type ClockStatus struct {
	// APIAhead is how far the Kubernetes API's clock was ahead at EKCO's start, if the two were far apart.
	APIAhead journal.Duration `json:"api_ahead"`
	// JumpedAt is when the clock last jumped, and Jump by how much.
	JumpedAt time.Time        `json:"jumped_at"`
	Jump     journal.Duration `json:"jump"`
}

// OperatorStatus is the process that answers or, if no process does, the last one that saw the cluster.
type OperatorStatus struct {
	fsm.OperatorState
	// Running is set if an operator answers.
	Running bool `json:"running"`
	// PID is that of the process that answers: an operator or, if no operator runs, a command that does the work.
	PID int `json:"pid"`
}

// JournalStatus is the journal's size and position.
type JournalStatus struct {
	journal.Stat
	// SafeMode is the damage that caused safe mode, Outdated the loss of the newest events that caused it; one of
	// them, or both.
	SafeMode *journal.JournalSalvaged `json:"safe_mode"`
	Outdated *journal.JournalOutdated `json:"outdated"`
	// SafeModeSince is when the first of the two was found.
	SafeModeSince time.Time `json:"safe_mode_since"`
	// LostFrom is the time of the last remaining event: the journal does not have the events between then and
	// SafeModeSince. It is zero if that time is unknown.
	LostFrom time.Time `json:"lost_from"`
	// Adopted is what EKCO last took over from the mirror that an EKCO with another journal had written.
	Adopted   *journal.JournalAdopted `json:"adopted"`
	AdoptedAt time.Time               `json:"adopted_at"`
	// Replaced is the file that this journal replaced.
	Replaced   *journal.JournalReplaced `json:"replaced"`
	ReplacedAt time.Time                `json:"replaced_at"`
	// Unopened is set while the journal cannot be opened and EKCO only observes. Then only Path is known of the
	// journal.
	Unopened *Unopened `json:"unopened"`
	// Writable reports whether the last append succeeded; Error is its error, and UnwritableSince the time of the
	// first failure, if known.
	Writable        bool      `json:"writable"`
	Error           string    `json:"error"`
	UnwritableSince time.Time `json:"unwritable_since"`
}

// Unopened says since when and why the journal is not open, and when EKCO retries.
type Unopened struct {
	Since   time.Time `json:"since"`
	Problem string    `json:"problem"`
	NextTry time.Time `json:"next_try"`
}

// NodeStatus is the status of one node.
type NodeStatus struct {
	Name  string            `json:"name"`
	UID   string            `json:"uid"`
	Role  journal.NodeRole  `json:"role"`
	State journal.NodeState `json:"state"`
	Since time.Time         `json:"since"`
	// Ready: its kubelet and its network are ready, also on a cordoned node.
	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// Taints are the taints that keep pods away from a present node.
	Taints           []journal.Taint `json:"taints"`
	Excluded         bool            `json:"excluded"`
	TerminatingPods  int             `json:"terminating_pods"`
	UnreachableSince time.Time       `json:"unreachable_since"`
	// Flapping is set while the node becomes lost and ready again and again; UnreachableSince is zero then.
	Flapping bool `json:"flapping"`
}

// ThingStatus is the status of a thing that is not a node.
type ThingStatus struct {
	Machine string        `json:"machine"`
	Name    string        `json:"name"`
	UID     string        `json:"uid"`
	State   journal.State `json:"state"`
	Since   time.Time     `json:"since"`
	// Gone: it no longer exists.
	Gone bool `json:"gone"`
	// NeedsPerson says why it needs a person, and Advice what that person can do. Both are empty if it needs none.
	NeedsPerson string `json:"needs_person"`
	Advice      string `json:"advice"`
	// Details describe it further, a line each, for people.
	Details []string `json:"details"`
	// Facts are the facts that its machine has for programs.
	Facts json.RawMessage `json:"facts"`
}

// VerifyResult is the result of a verification.
type VerifyResult struct {
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	// NotAJournal is set if the file never was a journal of EKCO.
	NotAJournal bool   `json:"not_a_journal,omitempty"`
	Events      uint64 `json:"events"`
	FirstSeq    uint64 `json:"first_seq"`
	LastSeq     uint64 `json:"last_seq"`
	// Head is the last event and its hash, which depends on all events before it; zero if the chain is broken.
	Head journal.Position `json:"head,omitzero"`
	// Expected is the event that was compared and is unchanged; zero without a comparison.
	Expected journal.Position `json:"expected,omitzero"`
	// Losses are the recorded losses of events, oldest first.
	Losses []Loss `json:"losses"`
	// Unread says why the events could not be read, so that Losses are unknown.
	Unread string `json:"unread,omitempty"`
}

// Loss is one time that the journal lost events.
type Loss struct {
	// Type, Seq and At are those of the event that records the loss.
	Type journal.Type `json:"type"`
	Seq  uint64       `json:"seq"`
	At   time.Time    `json:"at"`
	// After is the last event that was kept, and From its time; 0 and zero if unknown.
	After uint64    `json:"after"`
	From  time.Time `json:"from,omitzero"`
	// AtLeast is how many events are certainly lost, DamagedFile the file that may still have them.
	AtLeast     uint64 `json:"at_least"`
	DamagedFile string `json:"damaged_file,omitempty"`
	// EarlierFiles were set aside at earlier losses, whose record this loss removed.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}
