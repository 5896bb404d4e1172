package api

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The socket speaks HTTP/1.1. Every call is a POST of a JSON object to one of
// these paths and answers with a JSON object, {"error": …} when it failed.
// Events answers with one JSON object a line; import takes, and export gives,
// gzip'ed NDJSON.
const (
	pathPing    = "/v1/ping"
	pathStatus  = "/v1/status"
	pathEvents  = "/v1/events"
	pathExplain = "/v1/explain"
	pathThing   = "/v1/explain-thing"
	pathRequest = "/v1/request"
	pathPause   = "/v1/pause"
	pathResume  = "/v1/resume"
	pathRetry   = "/v1/retry"
	pathCancel  = "/v1/cancel"
	pathAccept  = "/v1/accept"
	pathExport  = "/v1/export"
	pathImport  = "/v1/import"
	pathVerify  = "/v1/verify"
)

const (
	// sudoHeader carries the client's SUDO_USER.
	sudoHeader = "Ekco-Sudo-User"
	// outcomeTrailer ends an export: "ok", or a wireError as JSON.
	outcomeTrailer = "Ekco-Outcome"
)

const (
	// maxRequest bounds the body of a call that is not an import.
	maxRequest = 1 << 20
	// importedFrom is the parameter that says where an import comes from.
	importedFrom = "from"
	// maxImport bounds an import.
	maxImport = 4 << 30
	// readPatience is how long a peer may take to send a request's body, or
	// the next piece of an import.
	readPatience = 10 * time.Second
	// writePatience is how long a peer may refuse to read. A reader that is
	// slower is cut off, so that it cannot hold the journal; the client then
	// asks again from where it was.
	writePatience = 10 * time.Second
)

// answer is what a call returns.
type answer[T any] struct {
	Error *wireError `json:"error,omitempty"`
	Value T          `json:"value,omitzero"`
}

type eventsRequest struct {
	Query  journal.Query `json:"query"`
	Follow bool          `json:"follow,omitempty"`
}

// eventLine is one line of an answer to Events: an event, an error, or the end.
type eventLine struct {
	Event *journal.Event `json:"event,omitempty"`
	Error *wireError     `json:"error,omitempty"`
	End   bool           `json:"end,omitempty"`
}

type nothing struct{}
