package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// These are the errors of connecting to the operator.
var (
	// ErrNoOperator means that no process listens on the socket.
	ErrNoOperator = errors.New("no operator listens on the socket")
	// ErrNoAnswer means that a process has the socket open but does not answer.
	ErrNoAnswer = errors.New("the operator does not answer on its socket")
	// ErrForbidden means that the user is neither root nor EKCO's own user.
	ErrForbidden = errors.New("only root and EKCO's own user may use the socket")
)

// ErrNotMirrored is returned for a pause, or for the end of a pause, that is in the journal and in force, but not in
// the mirror in the cluster. If the journal's machine is lost, the pause or its end is lost, too.
var ErrNotMirrored = errors.New("this is in force, but not in the mirror in the cluster, so it is lost if this machine is lost")

// knownErrors lists the errors that keep their identity across the socket, with their codes.
var knownErrors = []struct {
	word string
	err  error
}{
	{"refused", ErrRefused},
	{"not-found", ErrNotFound},
	{"invalid", ErrInvalid},
	{"forbidden", ErrForbidden},
	{"policy-refused", fsm.ErrRefused},
	{"unknown", fsm.ErrUnknown},
	{"no-such-action", fsm.ErrNoSuchAction},
	{"past-no-return", fsm.ErrPastNoReturn},
	{"not-paused", fsm.ErrNotPaused},
	{"not-in-safe-mode", fsm.ErrNotInSafeMode},
	{"not-mirrored", ErrNotMirrored},
	{"journal-closed", journal.ErrClosed},
	{"journal-foreign", journal.ErrNotAJournal},
	{"journal-damaged", journal.ErrDamaged},
	{"journal-locked", journal.ErrLocked},
	{"journal-other-cluster", journal.ErrOtherCluster},
	{"journal-other-format", journal.ErrOtherFormat},
	{"journal-unwritable", journal.ErrUnwritable},
	{"journal-unverified", journal.ErrUnverified},
	{"unknown-event-type", journal.ErrUnknownType},
	{"unknown-event-version", journal.ErrUnknownVersion},
	{"crowded", ErrCrowded},
	{"deadline-exceeded", context.DeadlineExceeded},
}

// Hidden returns an error that makes errors.Is match identity, but adds no text when it is wrapped.
func Hidden(identity error) error { return hidden{identity} }

type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }

// wireError is the JSON form of an error on the socket.
type wireError struct {
	Message string   `json:"message"`
	Is      []string `json:"is,omitempty"`
}

func toWire(err error) *wireError {
	wire := &wireError{Message: err.Error()}
	for _, identity := range knownErrors {
		if errors.Is(err, identity.err) {
			wire.Is = append(wire.Is, identity.word)
		}
	}
	return wire
}

// remoteError is an error from the server with its message and identities.
type remoteError struct {
	message string
	is      []error
}

func (e *remoteError) Error() string   { return e.message }
func (e *remoteError) Unwrap() []error { return e.is }

// err returns the error that the server sent.
func (w *wireError) err() error {
	remote := &remoteError{message: w.Message}
	for _, word := range w.Is {
		for _, identity := range knownErrors {
			if identity.word == word {
				remote.is = append(remote.is, identity.err)
			}
		}
	}
	return remote
}

// statusOf returns the HTTP status for an error. The client uses only the body of the answer.
func statusOf(err error) int {
	switch {
	case errors.Is(err, ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrRefused):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
