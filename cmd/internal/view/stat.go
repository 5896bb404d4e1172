package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// JournalStat writes the size, range and identity of a journal.
func JournalStat(w io.Writer, j api.JournalStatus, now time.Time) error {
	if u := j.Unopened; u != nil {
		_, err := fmt.Fprintf(w, "%s has not been open since %s: %s\n", orDash(Clean(j.Path)), words.Stamp(u.Since), Clean(u.Problem))
		return err
	}
	rows := [][]cell{
		{{text: "journal"}, {text: orDash(Clean(j.JournalID))}},
		{{text: "format"}, {text: fmt.Sprint(j.Format)}},
		{{text: "cluster"}, {text: orDash(Clean(j.ClusterUID))}},
		{{text: "file"}, {text: orDash(Clean(j.Path))}},
		{{text: "size"}, {text: formatSize(j.Bytes) + " (" + formatSize(j.FreeBytes) + " free)"}},
		{{text: "events"}, {text: fmt.Sprintf("%d, #%d to #%d", j.Events, j.FirstSeq, j.LastSeq)}},
	}
	if !j.FirstTime.IsZero() {
		rows = append(rows, []cell{{text: "time"}, {text: words.Stamp(j.FirstTime) + " to " + words.Stamp(j.LastTime)}})
	}
	if j.SnapshotSeq != 0 {
		rows = append(rows, []cell{{text: "snapshot"}, {text: fmt.Sprintf("at #%d", j.SnapshotSeq)}})
	}
	if j.SafeMode != nil || j.Outdated != nil {
		rows = append(rows, []cell{{text: "safe mode"}, {text: "yes; see ekco status"}})
	}
	if trouble := Unwritable(j, now); trouble != "" {
		rows = append(rows, []cell{{text: "writable"}, {text: "no: " + trouble}})
	}
	_, err := io.WriteString(w, strings.Join(alignCells(rows, style{}), "\n")+"\n")
	return err
}
