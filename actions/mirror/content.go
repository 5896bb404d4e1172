package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Format is the number of the mirror's newest format. An EKCO leaves the mirror of a
// newer format alone, since it would miss something: in the oldest format, the input of a request is
// next to its other members; before Format, there are no pauses and no parts.
const (
	Format       = 3
	inputFormat  = 2
	oldestFormat = 1
)

// formatOf returns the oldest format in which nothing of the content is missed.
func formatOf(content Content) int {
	switch {
	case len(content.Parts) > 0 || len(content.Pauses) > 0:
		return Format
	case slices.ContainsFunc(content.Actions, func(r journal.ActionRecord) bool { return r.Request.Input != nil }):
		return inputFormat
	}
	return oldestFormat
}

// ErrOtherFormat is returned when the mirror was written by an EKCO whose
// format this one does not read.
var ErrOtherFormat = errors.New("the mirror has an unknown format")

// errGarbage is returned for what never was a mirror, or is none any more. It is
// nobody's, and may be replaced.
var errGarbage = errors.New("EKCO did not write it")

// Content is what the mirror holds: one JSON object. Its first two members mean
// the same in every format.
type Content struct {
	Format int `json:"format"`
	// Version is the EKCO that wrote it; empty for one that does not say.
	Version string `json:"version,omitempty"`
	// JournalID is the journal that was mirrored.
	JournalID string `json:"journal_id"`
	// At is where that journal had come to, on disk; zero if it does not say. A
	// file of that journal which lacks this event has lost its newest ones.
	At journal.Position `json:"at,omitzero"`
	// ClusterUID is the UID of namespace kube-system; empty when it could not
	// be read.
	ClusterUID string    `json:"cluster_uid,omitempty"`
	WrittenAt  time.Time `json:"written_at"`
	// Covered is how far the writer knew other journals: what it does not have of their events up to
	// there has ended.
	Covered map[string]uint64 `json:"covered,omitempty"`
	journal.Carried
	// Actions are the open ones, unless they are in parts.
	Actions []journal.ActionRecord `json:"actions"`
	// Parts are the ConfigMaps that hold the open actions, in order.
	Parts []Part `json:"parts,omitempty"`
	// Ended are the actions that the mirrored journal, or one it took over from,
	// has ended; the newest of them. A mirror of an older EKCO has none.
	Ended []EndedAction `json:"ended,omitempty"`
	// LeftOut are the ids of open actions that found no space.
	LeftOut []string `json:"left_out,omitempty"`
}

// Knew returns the last event of a journal that the mirror's writer knew; 0 if it knew none, or does
// not say.
func (c Content) Knew(journalID string) uint64 {
	switch {
	case c.Pauses == nil: // an older EKCO wrote it, or passed it on
		return 0
	case c.JournalID == journalID:
		return c.Seq
	}
	return c.Covered[journalID]
}

// EndedAction says that an action is over. Ids are unique in one journal only,
// so the UID of the action's subject belongs to it.
type EndedAction struct {
	ID      string          `json:"id"`
	UID     string          `json:"uid,omitempty"`
	Outcome journal.Outcome `json:"outcome"`
	At      time.Time       `json:"at"`
}

// parse reads what a mirror holds. Its error wraps [ErrOtherFormat] for one that
// a newer EKCO wrote, and then comes with what could be read all the same.
func parse(raw []byte) (Content, error) {
	content, err := heading(raw)
	switch {
	case err != nil:
	case content.Format > Format:
		return content, &otherFormatError{content}
	case content.Format < oldestFormat:
		err = fmt.Errorf("its format is %d, but the oldest format is %d", content.Format, oldestFormat)
	default:
		content = Content{}
		err = json.Unmarshal(raw, &content)
	}
	if err != nil {
		return Content{}, fmt.Errorf("read the mirror of open actions: %w: %w", errGarbage, err)
	}
	return content, nil
}

// heading reads what a mirror of any format says of itself.
func heading(raw []byte) (content Content, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return content, err
	}
	if err := json.Unmarshal(members["format"], &content.Format); err != nil {
		return content, fmt.Errorf("its format: %w", err)
	}
	for name, field := range map[string]any{
		"version": &content.Version, "journal_id": &content.JournalID, "written_at": &content.WrittenAt,
	} {
		_ = json.Unmarshal(members[name], field) // another format need not have it
	}
	return content, nil
}

// otherFormatError says which EKCO a mirror needs.
type otherFormatError struct{ content Content }

// Error implements error.
func (o *otherFormatError) Error() string {
	writer, reader := "a newer EKCO", "an EKCO that reads it"
	if o.content.Version != "" {
		writer = "EKCO " + o.content.Version
		reader = writer + " or a newer one"
	}
	return fmt.Sprintf("%v: ConfigMap %s has format %d, written by %s; this EKCO reads formats up to %d and leaves it unchanged. "+
		"Run %s to finish its open actions, or delete the ConfigMap if you do not need them",
		ErrOtherFormat, kube.MirrorName, o.content.Format, writer, Format, reader)
}

// Unwrap returns [ErrOtherFormat].
func (o *otherFormatError) Unwrap() error { return ErrOtherFormat }
