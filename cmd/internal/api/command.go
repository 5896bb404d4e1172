package api

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Command is a request that only records events. PauseRequest, ResumeRequest, RetryRequest, CancelRequest and
// AcceptRequest implement it.
type Command interface {
	// Decide returns the events to record, or an error if the command is refused. It may return both.
	Decide(s *fsm.State, now time.Time) ([]journal.Draft, error)
	// By returns a copy of the command with this actor.
	By(actor string) Command
	// path returns the path of the method on the socket.
	path() string
}

// PauseRequest pauses everything or the thing with this name; see [fsm.Pause]. In the JSON the key is "node", because
// older versions know only this key and would otherwise pause everything.
type PauseRequest struct {
	Name   string        `json:"node,omitempty"`
	Reason string        `json:"reason"`
	For    time.Duration `json:"for,omitempty"`
	Actor  string        `json:"actor"`
}

// Decide implements [Command].
func (r PauseRequest) Decide(s *fsm.State, now time.Time) ([]journal.Draft, error) {
	return fsm.Pause(s, now, r.Name, r.Reason, r.For, r.Actor)
}

// ResumeRequest ends a pause; see [fsm.Resume].
type ResumeRequest struct {
	Name   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// Decide implements [Command].
func (r ResumeRequest) Decide(s *fsm.State, _ time.Time) ([]journal.Draft, error) {
	return fsm.Resume(s, r.Name, r.Reason, r.Actor)
}

// RetryRequest retries an open action at once; see [fsm.Retry].
type RetryRequest struct {
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	// Force makes a retry ignore a hold, if the hold may be forced.
	Force bool `json:"force,omitempty"`
	// List is the key of the list in the hold's reason, if the reason is a list.
	List  string `json:"list,omitempty"`
	Actor string `json:"actor"`
}

// Decide implements [Command].
func (r RetryRequest) Decide(s *fsm.State, _ time.Time) ([]journal.Draft, error) {
	if r.Force {
		return fsm.RetryPast(s, r.Action, r.List, r.Reason, r.Actor)
	}
	return fsm.Retry(s, r.Action, r.Reason, r.Actor)
}

// CancelRequest stops an open action; see [fsm.Cancel].
type CancelRequest struct {
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// Decide implements [Command].
func (r CancelRequest) Decide(s *fsm.State, _ time.Time) ([]journal.Draft, error) {
	return fsm.Cancel(s, r.Action, r.Reason, r.Actor)
}

// AcceptRequest ends safe mode.
type AcceptRequest struct {
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor"`
}

// Decide implements [Command].
func (r AcceptRequest) Decide(s *fsm.State, _ time.Time) ([]journal.Draft, error) {
	return fsm.Accept(s, r.Reason, r.Actor)
}

// By implements [Command].
func (r PauseRequest) By(actor string) Command { r.Actor = actor; return r }

// By implements [Command].
func (r ResumeRequest) By(actor string) Command { r.Actor = actor; return r }

// By implements [Command].
func (r RetryRequest) By(actor string) Command { r.Actor = actor; return r }

// By implements [Command].
func (r CancelRequest) By(actor string) Command { r.Actor = actor; return r }

// By implements [Command].
func (r AcceptRequest) By(actor string) Command { r.Actor = actor; return r }

func (PauseRequest) path() string  { return "/v1/pause" }
func (ResumeRequest) path() string { return "/v1/resume" }
func (RetryRequest) path() string  { return "/v1/retry" }
func (CancelRequest) path() string { return "/v1/cancel" }
func (AcceptRequest) path() string { return "/v1/accept" }
