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

// Format is the newest format of the mirror. An EKCO does not change a mirror of a newer format, because it would lose
// data. In oldestFormat, the input of a request is next to its other members; formats before Format have no pauses and
// no parts.
const (
	Format       = 3
	inputFormat  = 2
	oldestFormat = 1
)

// formatFor returns the oldest format that can hold all of the content.
func formatFor(content Content) int {
	switch {
	case len(content.Parts) > 0 || len(content.Pauses) > 0:
		return Format
	case slices.ContainsFunc(content.Actions, func(r journal.ActionRecord) bool { return r.Request.Input != nil }):
		return inputFormat
	}
	return oldestFormat
}

// ErrOtherFormat is returned if an EKCO wrote the mirror in a format that this EKCO does not read.
var ErrOtherFormat = errors.New("the mirror has an unknown format")

// errGarbage is returned for a ConfigMap whose content is not a mirror. It belongs to no EKCO and may be replaced.
var errGarbage = errors.New("EKCO did not write it")

// Content is the mirror: one JSON object. Its first two members mean the same in every format.
type Content struct {
	Format int `json:"format"`
	// Version is the version of the EKCO that wrote it; old ones leave it empty.
	Version string `json:"version,omitempty"`
	// JournalID is the journal that was mirrored.
	JournalID string `json:"journal_id"`
	// At is the last event of that journal on disk, zero if unknown. If that journal's file lacks this event, it has lost
	// its newest events.
	At journal.Position `json:"at,omitzero"`
	// ClusterUID is the UID of namespace kube-system, empty if it could not be read.
	ClusterUID string    `json:"cluster_uid,omitempty"`
	WrittenAt  time.Time `json:"written_at"`
	// Covered has the last event of each other journal that the writer knew. A pause from before that event has ended
	// if the mirror lacks it.
	Covered map[string]uint64 `json:"covered,omitempty"`
	// CoveredAt has for each of these journals the last event on disk that the writer knew, and its hash. Old mirrors have
	// none.
	CoveredAt map[string]journal.Position `json:"covered_at,omitempty"`
	journal.Carried
	// Actions are the open actions, unless they are in parts.
	Actions []journal.ActionRecord `json:"actions"`
	// Parts are the ConfigMaps that hold the open actions, in order.
	Parts []Part `json:"parts,omitempty"`
	// Ended are the newest actions that ended in the mirrored journal, or in one that it took over from. Old mirrors have
	// none.
	Ended []EndedAction `json:"ended,omitempty"`
	// LeftOut are the ids of open actions for which there was no space.
	LeftOut []string `json:"left_out,omitempty"`
}

// Knew returns the last event of a journal that the mirror's writer knew, 0 if none or unknown.
func (c Content) Knew(journalID string) uint64 {
	switch {
	case c.Pauses == nil: // the content of an older EKCO
		return 0
	case c.JournalID == journalID:
		return c.Seq
	}
	return c.Covered[journalID]
}

// EndedAction is an action that has ended. Ids are unique only in one journal, so the subject's UID is part of its
// identity.
type EndedAction struct {
	ID      string          `json:"id"`
	UID     string          `json:"uid,omitempty"`
	Outcome journal.Outcome `json:"outcome"`
	At      time.Time       `json:"at"`
}

// parse decodes a mirror. If a newer EKCO wrote it, the error wraps [ErrOtherFormat], and the content has what could be
// read.
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

// heading reads the members that a mirror of any format has.
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
		_ = json.Unmarshal(members[name], field) // other formats may lack it
	}
	return content, nil
}

// otherFormatError names the EKCO that reads the mirror.
type otherFormatError struct{ content Content }

// Error implements error.
func (o *otherFormatError) Error() string {
	writer, reader := "a newer EKCO", "a version of EKCO that reads this format"
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
