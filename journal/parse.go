package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// ParseRecord reads a record. The event shares no memory with the record. ParseRecord checks neither the hash (see
// [CheckRecord]) nor the payload (see [Event.Decode]). The error wraps [ErrDamaged].
func ParseRecord(record []byte) (Event, error) {
	if event, ok := parseWritten(record); ok {
		return event, nil
	}
	var event Event
	if err := json.Unmarshal(record, &event); err != nil {
		return Event{}, fmt.Errorf("parse record of %d bytes: %w: %w", len(record), err, ErrDamaged)
	}
	return event, nil
}

// parseWritten reads a record that has exactly the form that [Event.Seal] writes, without escapes in strings. It is
// much faster than encoding/json. It returns false for every other record.
func parseWritten(record []byte) (Event, bool) {
	body, hash, err := splitRecord(record)
	if err != nil {
		return Event{}, false
	}
	r := reader{rest: body}
	event := Event{Hash: hash}
	r.literal(`{"seq":`)
	event.Seq = r.number()
	r.literal(`,"time":`)
	event.Time = r.time()
	r.literal(`,"type":`)
	event.Type = r.eventType()
	r.literal(`,"v":`)
	event.Version = int(r.number())
	r.literal(`,"subject":{"kind":`)
	event.Subject.Kind = r.kind()
	event.Subject.Name = r.optional(`,"name":`)
	event.Subject.UID = r.optional(`,"uid":`)
	event.Subject.Node = r.node(event.Subject)
	r.literal(`}`)
	event.Action = r.optional(`,"action":`)
	if r.try(`,"cause":`) {
		event.Cause = r.number()
	}
	r.literal(`,"actor":`)
	event.Actor = r.actor()
	if r.try(`,"payload":`) {
		event.Payload = r.payload()
	}
	return event, !r.failed && len(r.rest) == 0
}

// reader reads a record from its start. At the first mismatch it sets failed; all results after that are invalid.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) try(literal string) bool {
	if len(r.rest) < len(literal) || string(r.rest[:len(literal)]) != literal {
		return false
	}
	r.rest = r.rest[len(literal):]
	return true
}

func (r *reader) literal(literal string) {
	if !r.try(literal) {
		r.failed = true
	}
}

func (r *reader) number() uint64 {
	n := 0
	for n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	value, err := strconv.ParseUint(string(r.rest[:n]), 10, 63)
	// encoding/json refuses leading zeros.
	if err != nil || (n > 1 && r.rest[0] == '0') {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

// raw reads a string without escapes, and returns its bytes without the quotes.
func (r *reader) raw() []byte {
	if len(r.rest) == 0 || r.rest[0] != '"' {
		r.failed = true
		return nil
	}
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '"':
			text := r.rest[1:i]
			r.rest = r.rest[i+1:]
			return text
		case c < ' ', c > '~', c == '\\':
			r.failed = true
			return nil
		}
	}
	r.failed = true
	return nil
}

func (r *reader) optional(name string) string {
	if !r.try(name) {
		return ""
	}
	return string(r.raw())
}

func (r *reader) time() (parsed time.Time) {
	if err := parsed.UnmarshalText(r.raw()); err != nil {
		r.failed = true
	}
	return parsed
}

// eventType returns the string of the catalog, if possible, to avoid an allocation.
func (r *reader) eventType() Type {
	name := r.raw()
	if known, ok := catalogByType[Type(name)]; ok {
		return known.Type
	}
	return Type(name)
}

// kind, actor and node return constant strings for frequent values, to avoid allocations.
func (r *reader) kind() string {
	switch text := r.raw(); string(text) {
	case "Node":
		return "Node"
	case "Pod":
		return "Pod"
	default:
		return string(text)
	}
}

func (r *reader) actor() string {
	switch text := r.raw(); string(text) {
	case "operator":
		return "operator"
	default:
		return string(text)
	}
}

func (r *reader) node(subject Subject) string {
	if !r.try(`,"node":`) {
		return ""
	}
	text := r.raw()
	if string(text) == subject.Name {
		return subject.Name
	}
	return string(text)
}

// payload returns the rest of the record. [Event.Decode] checks its syntax later.
func (r *reader) payload() json.RawMessage {
	if len(r.rest) < 2 || r.rest[0] != '{' || r.rest[len(r.rest)-1] != '}' {
		r.failed = true
		return nil
	}
	payload := bytes.Clone(r.rest)
	r.rest = nil
	return payload
}
