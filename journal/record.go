package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A record is the stored form of an event: one JSON object with the members in the order of the fields of [Event],
// without white space, the hash last. Everything before the member "hash" is the record's body, and
//
//	hash = SHA-256(hash of the record before, 32 raw bytes ‖ body)
//
// so an auditor can verify the hashes without knowing how EKCO encodes JSON. For the first record, the hash of the
// record before is 32 zero bytes.

const (
	hashMember = `,"hash":"`
	recordEnd  = `"}`
	// tailLen is the length of the hash member and the closing brace.
	tailLen = len(hashMember) + 2*sha256.Size + len(recordEnd)
)

// Event returns the draft as an event without sequence number, time and hash. It returns the errors of [Draft.Encode].
func (d Draft) Event() (Event, error) {
	payload, version, err := d.Encode()
	if err != nil {
		return Event{}, err
	}
	return Event{
		Type: d.Type, Version: version, Action: toValidUTF8(d.Action), Cause: d.Cause, Actor: toValidUTF8(d.Actor), Payload: payload,
		Subject: Subject{
			Kind: toValidUTF8(d.Subject.Kind), Name: toValidUTF8(d.Subject.Name),
			UID: toValidUTF8(d.Subject.UID), Node: toValidUTF8(d.Subject.Node),
		},
	}, nil
}

// toValidUTF8 replaces bytes that JSON cannot contain, so that a reader gets the same event that Append returned.
func toValidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Seal computes and sets the event's hash, and returns the record. previous is the hash of the record before.
func (e *Event) Seal(previous Hash) []byte {
	record, hash := SealBody(previous, e.appendBody(make([]byte, 0, 384+len(e.Payload))))
	e.Hash = hash
	return record
}

// SealBody appends the hash and the closing brace to body, a JSON object without its closing brace.
func SealBody(previous Hash, body []byte) ([]byte, Hash) {
	hash := chainHash(previous, body)
	return appendTail(body, hash), hash
}

// Record returns the stored form of the event. It does not compute the hash again.
func (e Event) Record() []byte {
	return appendTail(e.appendBody(make([]byte, 0, 384+len(e.Payload))), e.Hash)
}

// CheckRecord checks that the hash in a record matches its content, and returns the hash. The error wraps [ErrDamaged].
func CheckRecord(previous Hash, record []byte) (Hash, error) {
	body, stated, err := splitRecord(record)
	if err != nil {
		return Hash{}, err
	}
	if computed := chainHash(previous, body); computed != stated {
		return Hash{}, fmt.Errorf("the record has hash %s, but its content has %s: %w", stated, computed, ErrDamaged)
	}
	return stated, nil
}

// RecordHash returns the hash in a record, without checking it.
func RecordHash(record []byte) (Hash, error) {
	_, stated, err := splitRecord(record)
	return stated, err
}

func splitRecord(record []byte) (body []byte, stated Hash, err error) {
	at := len(record) - tailLen
	if at < 1 || !bytes.HasPrefix(record[at:], []byte(hashMember)) || !bytes.HasSuffix(record, []byte(recordEnd)) {
		return nil, Hash{}, fmt.Errorf("record of %d bytes does not end with its hash: %w", len(record), ErrDamaged)
	}
	digits := record[at+len(hashMember) : len(record)-len(recordEnd)]
	if _, err := hex.Decode(stated[:], digits); err != nil {
		return nil, Hash{}, fmt.Errorf("record's hash: %w: %w", err, ErrDamaged)
	}
	// An upper-case digit would decode to the same hash and hide a flipped bit.
	if bytes.ContainsAny(digits, "ABCDEF") {
		return nil, Hash{}, fmt.Errorf("record's hash is not in lower case: %w", ErrDamaged)
	}
	return record[:at], stated, nil
}

func chainHash(previous Hash, body []byte) Hash {
	digest := sha256.New()
	digest.Write(previous[:])
	digest.Write(body)
	var sum Hash
	digest.Sum(sum[:0])
	return sum
}

func appendTail(record []byte, hash Hash) []byte {
	record = append(record, hashMember...)
	record = hex.AppendEncode(record, hash[:])
	return append(record, recordEnd...)
}

func (e *Event) appendBody(b []byte) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = appendMember(b, `","type":`, string(e.Type))
	b = append(b, `,"v":`...)
	b = strconv.AppendInt(b, int64(e.Version), 10)
	b = appendMember(b, `,"subject":{"kind":`, e.Subject.Kind)
	b = appendOptional(b, `,"name":`, e.Subject.Name)
	b = appendOptional(b, `,"uid":`, e.Subject.UID)
	b = appendOptional(b, `,"node":`, e.Subject.Node)
	b = append(b, '}')
	b = appendOptional(b, `,"action":`, e.Action)
	if e.Cause != 0 {
		b = append(b, `,"cause":`...)
		b = strconv.AppendUint(b, e.Cause, 10)
	}
	b = appendMember(b, `,"actor":`, e.Actor)
	if len(e.Payload) != 0 {
		b = append(b, `,"payload":`...)
		b = append(b, e.Payload...)
	}
	return b
}

func appendOptional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendMember(b, name, value)
}

func appendMember(b []byte, name, value string) []byte {
	b = append(b, name...)
	if plain(value) {
		b = append(b, '"')
		b = append(b, value...)
		return append(b, '"')
	}
	quoted, err := json.Marshal(value)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	return append(b, quoted...)
}

// plain reports whether encoding/json writes s without an escape.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
