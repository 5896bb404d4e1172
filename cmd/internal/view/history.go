package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

var historyFormats = []string{"table", "wide", "json", "yaml", "tree"}

// HistoryFormats returns the output formats of a history.
func HistoryFormats() []string { return append([]string(nil), historyFormats...) }

// History writes events one after the other. Only a tree keeps data in memory: the steps of open actions and, unless it
// is live, all events since the first open action began.
type History interface {
	// Event writes an event, or keeps it for later.
	Event(e journal.Event) error
	// Flush writes the kept events.
	Flush() error
}

// Options configures a history.
type Options struct {
	// Color allows colours.
	Color bool
	// Live writes each event as early as possible, for a followed history.
	Live bool
	// Lookup returns the event with a sequence number, if there is one. Histories use it for the causes of actions. It
	// may be nil.
	Lookup func(seq uint64) (journal.Event, bool)
	// Origin returns the first event of an action, if there is one. It may be nil.
	Origin func(action string) (journal.Event, bool)
	// Words is the message catalog.
	Words *words.Vocabulary
	// Zone is the time zone of the output; nil means UTC.
	Zone *time.Location
	// Now is the time up to which the durations of open entries are computed.
	Now time.Time
}

// NewHistory returns a History of the given format that writes to w.
func NewHistory(w io.Writer, format string, options Options) (History, error) {
	switch format {
	case "table", "wide":
		return &historyTable{w: w, style: style{options.Color}, zone: zone{options.Zone}, words: options.Words, wide: format == "wide"}, nil
	case "json":
		return historyJSON{w}, nil
	case "yaml":
		return historyYAML{w}, nil
	case "tree":
		return newTree(w, options), nil
	case "summary":
		return newDigest(w, options), nil
	}
	return nil, fmt.Errorf("unknown output %q: want one of %v", format, historyFormats)
}

// historyTable has columns of fixed width, so that it keeps no rows in memory.
type historyTable struct {
	w      io.Writer
	style  style
	zone   zone
	words  *words.Vocabulary
	wide   bool
	headed bool
}

// Event writes one row.
func (h *historyTable) Event(e journal.Event) error {
	if !h.headed {
		h.headed = true
		head := fmt.Sprintf("%7s  %-*s  %-17s  ", "SEQ", h.zone.width(), "TIME", "TYPE")
		if h.wide {
			head += fmt.Sprintf("%-20s  %-7s  %-28s  %-36s  ", "ACTOR", "CAUSE", "SUBJECT", "UID")
		}
		if _, err := fmt.Fprintln(h.w, head+"WHAT"); err != nil {
			return err
		}
	}
	kind, decoded := fmt.Sprintf("%-17s", Clean(string(e.Type))), e.Decoded()
	row := fmt.Sprintf("%7d  %-*s  %s  ", e.Seq, h.zone.width(), h.zone.stamp(e.Time), h.style.paint(h.words.Tone(decoded), kind))
	if h.wide {
		cause := "-"
		if e.Cause != 0 {
			cause = "#" + strconv.FormatUint(e.Cause, 10)
		}
		row += fmt.Sprintf("%-20s  %-7s  %-28s  %-36s  ", Clean(e.Actor), cause, orDash(Clean(subject(e.Subject))), orDash(Clean(e.Subject.UID)))
	}
	_, err := fmt.Fprintln(h.w, row+h.zone.convertTimes(Sentence(h.words, decoded)))
	return err
}

// Flush does nothing, because every row is already written.
func (h *historyTable) Flush() error { return nil }

func subject(s journal.Subject) string {
	if s.Name == "" {
		return s.Kind
	}
	return s.Kind + "/" + s.Name
}

type historyJSON struct{ w io.Writer }

// Event writes the event exactly as it is in the journal.
func (h historyJSON) Event(e journal.Event) error {
	_, err := h.w.Write(append(escapeJSON(e.Record()), '\n'))
	return err
}

func (h historyJSON) Flush() error { return nil }

type historyYAML struct{ w io.Writer }

// Event writes one YAML document.
func (h historyYAML) Event(e journal.Event) error { return writeYAML(h.w, e, true) }

func (h historyYAML) Flush() error { return nil }

// writeYAML writes a value as YAML. It replaces control characters in texts with [Clean], because YAML cannot escape
// them.
func writeYAML(w io.Writer, value any, separate bool) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	if content, err = yaml.Marshal(cleanJSON(decoded)); err != nil {
		return fmt.Errorf("write as YAML: %w", err)
	}
	if separate {
		content = append([]byte("---\n"), content...)
	}
	_, err = w.Write(content)
	return err
}
