package api

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Errors that cross the socket with their identity: the client returns an
// error for which errors.Is holds as it did on the server.
var (
	// ErrRefused: policy does not admit the request; the message says why.
	ErrRefused = errors.New("refused")
	// ErrNotFound: there is no such node, action or pause; the message lists
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
	Checks  []CheckResult      `json:"checks"`
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
}

// Status is everything `ekco status` shows.
type Status struct {
	Now      time.Time      `json:"now"`
	Operator OperatorStatus `json:"operator"`
	Journal  JournalStatus  `json:"journal"`
	API      fsm.APIState   `json:"api"`
	Nodes    []NodeStatus   `json:"nodes"`
	// Actions are the open ones, oldest first.
	Actions  []journal.ActionRecord `json:"actions"`
	Refusals []fsm.Refusal          `json:"refusals,omitempty"`
	// Pauses by node name; "" pauses everything.
	Pauses   map[string]fsm.PauseState `json:"pauses,omitempty"`
	Problems []string                  `json:"problems,omitempty"`
	// Absent lists what EKCO does without, for example a missing permission.
	Absent []string `json:"absent,omitempty"`
}

// OperatorStatus is the running operator, or the last one that ran.
type OperatorStatus struct {
	fsm.OperatorState
	// Running is false when the answer was read from the file.
	Running bool `json:"running"`
	PID     int  `json:"pid,omitempty"`
}

// JournalStatus is the journal's size and position.
type JournalStatus struct {
	journal.Stat
	SafeMode *journal.JournalSalvaged `json:"safe_mode,omitempty"`
	// Writable says whether the last append succeeded; Error why not.
	Writable bool   `json:"writable"`
	Error    string `json:"error,omitempty"`
}

// NodeStatus is one node machine.
type NodeStatus struct {
	Name             string            `json:"name"`
	UID              string            `json:"uid"`
	Role             journal.NodeRole  `json:"role"`
	State            journal.NodeState `json:"state"`
	Since            time.Time         `json:"since"`
	Ready            bool              `json:"ready"`
	Excluded         bool              `json:"excluded,omitempty"`
	TerminatingPods  int               `json:"terminating_pods,omitempty"`
	UnreachableSince time.Time         `json:"unreachable_since,omitzero"`
}

// PauseRequest pauses everything, or one node.
type PauseRequest struct {
	Node   string        `json:"node,omitempty"`
	Reason string        `json:"reason"`
	For    time.Duration `json:"for,omitempty"`
	Actor  string        `json:"actor"`
}

// ResumeRequest ends a pause.
type ResumeRequest struct {
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// ActionCommand is a word about an open action.
type ActionCommand struct {
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
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
}
