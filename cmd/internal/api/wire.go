package api

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The socket uses HTTP/1.1. Every call is a POST of a JSON object to one of these paths, and returns a JSON object,
// which is {"error": …} on failure. Events returns one JSON object per line. Import reads gzip-compressed NDJSON, and
// export returns it.
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
	// sudoHeader has the client's SUDO_USER.
	sudoHeader = "Ekco-Sudo-User"
	// outcomeTrailer is sent at the end of an export: "ok", or a wireError as JSON.
	outcomeTrailer = "Ekco-Outcome"
)

const (
	// maxRequest is the maximum size in bytes of a call's body, except for imports.
	maxRequest = 1 << 20
	// importedFrom is the parameter with the origin of an import.
	importedFrom = "from"
	// maxImport is the maximum size in bytes of an import.
	maxImport = 4 << 30
	// readTimeout is how long a peer may take to send a request's body, or the next piece of an import.
	readTimeout = 10 * time.Second
	// writeTimeout is how long a write waits for a peer that does not read. Then the server ends the stream, so that a
	// slow reader cannot block the journal, and the client continues with another request.
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

// eventLine is one line of an answer to Events: an event, an error, or the end of the stream.
type eventLine struct {
	Event *journal.Event `json:"event,omitempty"`
	Error *wireError     `json:"error,omitempty"`
	End   bool           `json:"end,omitempty"`
}

type nothing struct{}
