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
// data. In oldestFormat, the input of a request is next to its other members. Formats before Format have no pauses and
// no parts.
const (
	Format       = 3
	inputFormat  = 2
	oldestFormat = 1
)

// formatFor returns the oldest format that can express the content.
func formatFor(content Content) int {
	switch {
	case len(content.Parts) > 0 || len(content.Pauses) > 0:
		return Format
	case slices.ContainsFunc(content.Actions, func(r journal.ActionRecord) bool { return r.Request.Input != nil }):
		return inputFormat
	}
	return oldestFormat
}

// ErrOtherFormat is returned if this EKCO cannot read the format of the mirror.
var ErrOtherFormat = errors.New("the mirror has an unknown format")

// errGarbage is returned if the content of the ConfigMap is not a mirror. Any EKCO may then replace it.
var errGarbage = errors.New("EKCO did not write it")

// Content is the mirror, one JSON object. Its first two members have the same meaning in every format.
type Content struct {
	Format int `json:"format"`
	// Version is the version of the EKCO that wrote the mirror. Old versions leave it empty.
	Version string `json:"version,omitempty"`
	// Host is the machine that has the mirrored journal. Old versions leave it empty.
	Host string `json:"host,omitempty"`
	// JournalID identifies the mirrored journal.
	JournalID string `json:"journal_id"`
	// At is the last event that this journal had on disk; zero if unknown. A file of the journal without this event has
	// lost its newest events.
	At journal.Position `json:"at,omitzero"`
	// ClusterUID is the UID of namespace kube-system, or "" if EKCO could not read it.
	ClusterUID string    `json:"cluster_uid,omitempty"`
	WrittenAt  time.Time `json:"written_at"`
	// Covered has the number of the last event that the writer knew of each other journal. If the mirror lacks a pause
	// that began before that event, the pause has ended.
	Covered map[string]uint64 `json:"covered,omitempty"`
	// CoveredAt has, for each of these journals, the last event on disk that the writer knew, with its hash. Old
	// mirrors do not have it.
	CoveredAt map[string]journal.Position `json:"covered_at,omitempty"`
	journal.Carried
	// Actions has the open actions, unless they are in parts.
	Actions []journal.ActionRecord `json:"actions"`
	// Parts lists the ConfigMaps with the open actions, in order.
	Parts []Part `json:"parts,omitempty"`
	// Ended lists the newest actions that ended in the mirrored journal, or in journals that its EKCO took over. Old
	// mirrors do not have it.
	Ended []EndedAction `json:"ended,omitempty"`
	// LeftOut has the ids of open actions for which the mirror had no space.
	LeftOut []string `json:"left_out,omitempty"`
}

// Knew returns the number of the last event of a journal that the mirror's writer knew. It returns 0 if there is none
// or it is unknown.
func (c Content) Knew(journalID string) uint64 {
	if c.JournalID == journalID {
		return c.Seq
	}
	return c.Covered[journalID]
}

// EndedAction is an action that has ended. It includes the subject's UID, because action ids are unique only within one
// journal.
type EndedAction struct {
	ID      string          `json:"id"`
	UID     string          `json:"uid,omitempty"`
	Outcome journal.Outcome `json:"outcome"`
	At      time.Time       `json:"at"`
}

// parse decodes a mirror. If a newer EKCO wrote it, the error wraps [ErrOtherFormat], and the content has the readable
// members.
func parse(raw []byte) (Content, error) {
	content, err := readCommonMembers(raw)
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

// readCommonMembers reads the members that are the same in all formats.
func readCommonMembers(raw []byte) (content Content, err error) {
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

// otherFormatError names the EKCO version that can read the mirror.
type otherFormatError struct{ content Content }

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

func (o *otherFormatError) Unwrap() error { return ErrOtherFormat }
