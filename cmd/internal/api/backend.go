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

// Errors that cross the socket with their identity: the client returns an
// error for which errors.Is holds as it did on the server.
var (
	// ErrRefused: policy does not admit the request; the message says why.
	ErrRefused = errors.New("refused")
	// ErrNotFound: there is no such thing, action or pause; the message lists
	// near names.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request makes no sense; the message says what is expected.
	ErrInvalid = errors.New("invalid request")
)

// Backend is what the socket serves; the ring implements it.
type Backend interface {
	// Status folds the present into one answer.
	Status(ctx context.Context) (Status, error)
	// Events yields the events that match; with follow set it then waits for
	// more until ctx ends.
	Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error]
	// Explain says what a request would do: its plan and the present answer of
	// each preflight. It changes nothing and writes nothing.
	Explain(ctx context.Context, request fsm.Request) (Explanation, error)
	// ExplainThing says why things are as they are, and what keeps EKCO from acting.
	ExplainThing(ctx context.Context, request ThingRequest) ([]ThingExplanation, error)
	// Request asks for an action. It returns as soon as the action is on disk;
	// Events shows how it goes on.
	Request(ctx context.Context, request fsm.Request) (Admission, error)
	Pause(ctx context.Context, request PauseRequest) error
	Resume(ctx context.Context, request ResumeRequest) error
	Retry(ctx context.Context, request ActionCommand) error
	Cancel(ctx context.Context, request ActionCommand) error
	// Accept ends safe mode.
	Accept(ctx context.Context, request AcceptRequest) error
	// Export writes the matching events as gzip'ed NDJSON.
	Export(ctx context.Context, w io.Writer, query journal.Query) error
	// Import reads an export. from is where it comes from, for the record.
	Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error)
	// Verify checks the whole journal while it is in use.
	Verify(ctx context.Context) (VerifyResult, error)
}

// Admission is the answer to a request.
type Admission struct {
	// Action is the id of the action that does it.
	Action string `json:"action,omitempty"`
	// Resumed is set when the action was open already.
	Resumed bool `json:"resumed,omitempty"`
	// AlreadyDone is set when there is nothing to do; Message says why.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
	// FromSeq is where to read the action's events from (exclusive).
	FromSeq uint64 `json:"from_seq"`
}

// Explanation is a plan that is not carried out.
type Explanation struct {
	Kind    journal.ActionKind `json:"kind"`
	Subject journal.Subject    `json:"subject"`
	Plan    journal.Plan       `json:"plan"`
	// Costs say what it takes away or changes, a line each, for people.
	Costs  []string      `json:"costs,omitempty"`
	Checks []CheckResult `json:"checks"`
	// Resumes is the id of the open action that the request would join.
	Resumes string `json:"resumes,omitempty"`
	// AlreadyDone is set when there is nothing to do; Message says why.
	AlreadyDone bool   `json:"already_done,omitempty"`
	Message     string `json:"message,omitempty"`
}

// Verdict is a preflight's answer.
type Verdict string

// The verdicts.
const (
	VerdictPass Verdict = "pass"
	// VerdictWarn lets a manual action go on, recorded.
	VerdictWarn Verdict = "warn"
	// VerdictHold makes the action wait.
	VerdictHold Verdict = "hold"
	// VerdictRefuse refuses the request, unless forced where that is possible.
	VerdictRefuse Verdict = "refuse"
	// VerdictUnasked: an explanation names the check, but could not ask it without
	// writing something.
	VerdictUnasked Verdict = "not asked"
)

// CheckResult is a preflight's present answer.
type CheckResult struct {
	Preflight string  `json:"preflight"`
	Verdict   Verdict `json:"verdict"`
	Reason    string  `json:"reason,omitempty"`
	// Key names what the reason is about; it goes into the answer.
	Key string `json:"key,omitempty"`
}

// Status is everything `ekco status` shows.
//
// No key is left out because it is empty, where a program may look for it.
type Status struct {
	// Verdict and Problems are filled in by [Judge].
	Verdict  Overall   `json:"verdict"`
	Problems []Problem `json:"problems"`
	Now      time.Time `json:"now"`
	// AsOf is set when what Nodes say need not be so any more: it was so then.
	AsOf time.Time `json:"as_of"`
	// Starting is set while the process that answers has not seen the cluster.
	Starting *Starting      `json:"starting"`
	Operator OperatorStatus `json:"operator"`
	Journal  JournalStatus  `json:"journal"`
	API      fsm.APIState   `json:"api"`
	Clock    ClockStatus    `json:"clock"`
	Nodes    []NodeStatus   `json:"nodes"`
	// Things are those of all machines but nodes'.
	Things []ThingStatus `json:"things"`
	// Actions are the open ones, oldest first.
	Actions []journal.ActionRecord `json:"actions"`
	// Unrecorded is what open actions have come to, by id, that could not be
	// written down; for people.
	Unrecorded map[string]string `json:"unrecorded"`
	// Progress is how far steps under way have come that report it, by action and
	// step. It is what they said last, and in no journal.
	Progress map[string]map[string]actions.Progress `json:"progress"`
	Refusals []fsm.Refusal                          `json:"refusals"`
	// Next is what the operator will begin by itself, and what keeps it from that. It is
	// empty where none answers.
	Next []fsm.Upcoming `json:"next"`
	// Pauses by the name of the node, of anything else by what it is and its name, like
	// "lamp/hall"; "" pauses everything.
	Pauses map[string]fsm.PauseState `json:"pauses"`
	// Defects are events that could not be folded.
	Defects []string `json:"defects"`
	// Mirror is why the open actions are not mirrored in the cluster; empty if
	// they are.
	Mirror string `json:"mirror"`
	// NotMirrored are the ids of the open actions that the mirror does not hold.
	NotMirrored []string `json:"not_mirrored"`
	// Absent lists what EKCO does without, for example a missing permission, and
	// what it does not do although it is switched on.
	Absent []string `json:"absent"`
}

// Starting is how far a process has come that has just started.
type Starting struct {
	// Since is when it started.
	Since time.Time `json:"since"`
	// To is what it tries to do, Error why it could not do that.
	To    string `json:"to"`
	Error string `json:"error"`
}

// ClockStatus says what is wrong with the clock of EKCO's machine, or was.
type ClockStatus struct {
	// APIAhead is set when the clock and the Kubernetes API's were far apart at
	// EKCO's start: how far that one was ahead.
	APIAhead journal.Duration `json:"api_ahead"`
	// JumpedAt is when the clock last jumped, Jump by how much.
	JumpedAt time.Time        `json:"jumped_at"`
	Jump     journal.Duration `json:"jump"`
}

// OperatorStatus is the process that answers or, if nobody does, the last one
// that saw the cluster.
type OperatorStatus struct {
	fsm.OperatorState
	// Running is set when an operator answers.
	Running bool `json:"running"`
	// PID is that of the process that answers: an operator or, where none runs, a
	// command that does the work.
	PID int `json:"pid"`
}

// JournalStatus is the journal's size and position.
type JournalStatus struct {
	journal.Stat
	// SafeMode tells of the damage that safe mode is because of, Outdated of the
	// loss of the newest events that it is because of; either, or both.
	SafeMode *journal.JournalSalvaged `json:"safe_mode"`
	Outdated *journal.JournalOutdated `json:"outdated"`
	// SafeModeSince is when the first of them was found.
	SafeModeSince time.Time `json:"safe_mode_since"`
	// LostFrom is when the last event was written that is left: what happened from then until
	// SafeModeSince is not known. It is left out where nobody knows since when events are missing.
	LostFrom time.Time `json:"lost_from"`
	// Adopted says what was last taken over from the mirror, which another journal's EKCO had written.
	Adopted   *journal.JournalAdopted `json:"adopted"`
	AdoptedAt time.Time               `json:"adopted_at"`
	// Replaced tells of the file in whose place the journal was begun.
	Replaced   *journal.JournalReplaced `json:"replaced"`
	ReplacedAt time.Time                `json:"replaced_at"`
	// Unopened is set while the journal cannot be opened and EKCO only observes.
	// Of the journal itself only Path is known then.
	Unopened *Unopened `json:"unopened"`
	// Writable says whether the last append succeeded; Error why not, and
	// UnwritableSince when the first one failed, if that is known.
	Writable        bool      `json:"writable"`
	Error           string    `json:"error"`
	UnwritableSince time.Time `json:"unwritable_since"`
}

// Unopened says since when and why the journal is not open, and when it is tried
// again.
type Unopened struct {
	Since   time.Time `json:"since"`
	Problem string    `json:"problem"`
	NextTry time.Time `json:"next_try"`
}

// NodeStatus is one node machine.
type NodeStatus struct {
	Name  string            `json:"name"`
	UID   string            `json:"uid"`
	Role  journal.NodeRole  `json:"role"`
	State journal.NodeState `json:"state"`
	Since time.Time         `json:"since"`
	// Ready: its kubelet and its network are well. It is also said of a node that is
	// Cordoned: somebody keeps new pods away from it.
	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// Taints are those that keep a present node from taking pods.
	Taints           []journal.Taint `json:"taints"`
	Excluded         bool            `json:"excluded"`
	TerminatingPods  int             `json:"terminating_pods"`
	UnreachableSince time.Time       `json:"unreachable_since"`
	// Flapping is set while the node is lost and comes back again and again; since
	// when is not known then.
	Flapping bool `json:"flapping"`
}

// ThingStatus is what a machine is about, where that is no node.
type ThingStatus struct {
	Machine string        `json:"machine"`
	Name    string        `json:"name"`
	UID     string        `json:"uid"`
	State   journal.State `json:"state"`
	Since   time.Time     `json:"since"`
	// Gone: it no longer exists.
	Gone bool `json:"gone"`
	// NeedsPerson says why it needs a person, and Advice what that person can do. Both are empty if it
	// needs nobody.
	NeedsPerson string `json:"needs_person"`
	Advice      string `json:"advice"`
	// Details are what its facts say beyond the state, line by line, for people.
	Details []string `json:"details"`
	// Facts are what its machine tells of it to programs.
	Facts json.RawMessage `json:"facts"`
}

// PauseRequest pauses everything, or the one thing that a person calls so: see
// [fsm.Pause]. On the socket it is a node, which it once had to be: an EKCO that does
// not know another name for it would pause everything.
type PauseRequest struct {
	Name   string        `json:"node,omitempty"`
	Reason string        `json:"reason"`
	For    time.Duration `json:"for,omitempty"`
	Actor  string        `json:"actor"`
}

// ResumeRequest ends a pause, see [fsm.Resume].
type ResumeRequest struct {
	Name   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// ActionCommand is a word about an open action.
type ActionCommand struct {
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	// Force has a retry go past what holds the action, as far as that may be forced.
	Force bool   `json:"force,omitempty"`
	Actor string `json:"actor"`
}

// AcceptRequest ends safe mode.
type AcceptRequest struct {
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// VerifyResult is what a verification found.
type VerifyResult struct {
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	// NotAJournal is set when the file never was one of EKCO's.
	NotAJournal bool   `json:"not_a_journal,omitempty"`
	Events      uint64 `json:"events"`
	FirstSeq    uint64 `json:"first_seq"`
	LastSeq     uint64 `json:"last_seq"`
	// Head is the last event and its hash, which stands for all before it; zero where the
	// chain does not hold.
	Head journal.Position `json:"head,omitzero"`
	// Expected is the event that was compared, and is as it once was; zero without.
	Expected journal.Position `json:"expected,omitzero"`
	// Losses are each time that the journal lost events, as its events tell, oldest first.
	Losses []Loss `json:"losses"`
	// Unread is why its events could not be read, so that Losses are not known.
	Unread string `json:"unread,omitempty"`
}

// Loss is one time that the journal lost events.
type Loss struct {
	// Type is the event that tells of it, Seq its number and At its time.
	Type journal.Type `json:"type"`
	Seq  uint64       `json:"seq"`
	At   time.Time    `json:"at"`
	// After is the last event that was kept, and From its time; 0 and zero if nobody knows.
	After uint64    `json:"after"`
	From  time.Time `json:"from,omitzero"`
	// AtLeast is how many events are known to be lost, DamagedFile where they may still be.
	AtLeast     uint64 `json:"at_least"`
	DamagedFile string `json:"damaged_file,omitempty"`
	// EarlierFiles were set aside at earlier losses, of which this one took the record.
	EarlierFiles []string `json:"earlier_files,omitempty"`
}
