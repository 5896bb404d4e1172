package api

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The socket speaks HTTP/1.1. Every call is a POST of a JSON object to one of these paths and returns a JSON object,
// {"error": …} on failure. Events returns one JSON object per line; import reads, and export returns, gzip'ed NDJSON.
const (
	pathPing    = "/v1/ping"
	pathStatus  = "/v1/status"
	pathEvents  = "/v1/events"
	pathExplain = "/v1/explain"
	pathThing   = "/v1/explain-thing"
	pathRequest = "/v1/request"
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
	// maxRequest is the largest body of a call that is not an import.
	maxRequest = 1 << 20
	// importedFrom is the parameter with the origin of an import.
	importedFrom = "from"
	// maxImport is the largest import.
	maxImport = 4 << 30
	// readTimeout is how long a peer may take to send a request's body, or the next piece of an import.
	readTimeout = 10 * time.Second
	// writeTimeout is how long a peer may not read. A slower reader is cut off, so that it cannot block the journal;
	// the client then continues with another request.
	writeTimeout = 10 * time.Second
)

// answer is the result of a call.
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
