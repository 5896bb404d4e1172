package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Format is the number of the mirror's format.
const Format = 1

// ErrOtherFormat is returned when the mirror was written by an EKCO whose
// format this one does not read.
var ErrOtherFormat = errors.New("the mirror has an unknown format")

// Content is what the mirror holds: one JSON object.
type Content struct {
	Format int `json:"format"`
	// JournalID is the journal that was mirrored.
	JournalID string `json:"journal_id"`
	// ClusterUID is the UID of namespace kube-system; empty when it could not
	// be read.
	ClusterUID string    `json:"cluster_uid,omitempty"`
	WrittenAt  time.Time `json:"written_at"`
	// Actions are the open ones.
	Actions []journal.ActionRecord `json:"actions"`
	// Ended are the actions that the mirrored journal, or one it took over from,
	// has ended; the newest of them. A mirror of an older EKCO has none.
	Ended []EndedAction `json:"ended,omitempty"`
	// Trimmed says, for people, which details were left out to save space.
	Trimmed []string `json:"trimmed,omitempty"`
	// LeftOut are the ids of open actions that found no space at all.
	LeftOut []string `json:"left_out,omitempty"`
}

// EndedAction says that an action is over. Ids are unique in one journal only,
// so the UID of the action's subject belongs to it.
type EndedAction struct {
	ID      string          `json:"id"`
	UID     string          `json:"uid,omitempty"`
	Outcome journal.Outcome `json:"outcome"`
	At      time.Time       `json:"at"`
}

// parse reads what a mirror holds.
func parse(raw []byte) (Content, error) {
	var content Content
	if err := json.Unmarshal(raw, &content); err != nil {
		return Content{}, fmt.Errorf("read the mirror of open actions: %w", err)
	}
	if content.Format != Format {
		return content, fmt.Errorf("read the mirror of open actions: format %d, this EKCO knows %d: %w",
			content.Format, Format, ErrOtherFormat)
	}
	return content, nil
}
