package journal

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Event is one record of the journal. Its JSON form is the stored form, which an auditor can read with standard
// tools.
type Event struct {
	// Seq numbers the events of one journal from 1, without gaps. Retention can move events out of the file.
	Seq uint64 `json:"seq"`
	// Time is when the event was appended, by the clock of the EKCO that appended it, in UTC with nanoseconds. It can
	// go backwards with clock.jumped, and between two writers; Seq never does.
	Time time.Time `json:"time"`
	// Type and Version define the type of the payload; see [Catalog].
	Type    Type `json:"type"`
	Version int  `json:"v"`
	// Subject is the object the event is about.
	Subject Subject `json:"subject"`
	// Action is the id of the action the event belongs to, or empty.
	Action string `json:"action,omitempty"`
	// Cause is the sequence number of the event that caused this one, or 0.
	Cause uint64 `json:"cause,omitempty"`
	// Actor is who did it: "operator", "observer/node", "cli:<user>@<host>".
	Actor string `json:"actor"`
	// Payload is the JSON object that [Catalog] gives for Type and Version.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Hash chains this record to the one before it; see README.md.
	Hash Hash `json:"hash"`
}

// Subject names the object an event is about.
type Subject struct {
	// Kind is a Kubernetes kind ("Node", "Pod") or one of EKCO's own:
	// "Cluster", "Operator", "Journal".
	Kind string `json:"kind"`
	// Name is the object's name; "namespace/name" for a namespaced object.
	Name string `json:"name,omitempty"`
	// UID is the object's UID. Objects with the same name and different UIDs are different objects.
	UID string `json:"uid,omitempty"`
	// Node is the name of the object's node; for a Node its own name. "history --node" searches it.
	Node string `json:"node,omitempty"`
}

// NodeSubject returns the subject of a Node.
func NodeSubject(name, uid string) Subject {
	return Subject{Kind: "Node", Name: name, UID: uid, Node: name}
}

// PodSubject returns the subject of a Pod on the named node.
func PodSubject(namespace, name, uid, node string) Subject {
	return Subject{Kind: "Pod", Name: namespace + "/" + name, UID: uid, Node: node}
}

// Subjects of events that concern no single object of the cluster.
var (
	ClusterSubject  = Subject{Kind: "Cluster"}
	OperatorSubject = Subject{Kind: "Operator"}
	JournalSubject  = Subject{Kind: "Journal"}
)

// Draft is an event before it is appended: the journal adds the sequence
// number, the time and the hash.
type Draft struct {
	Type    Type
	Subject Subject
	Action  string
	Cause   uint64
	Actor   string
	// Payload must be the type that [Catalog] lists for Type; otherwise [Draft.Encode] returns an error.
	Payload Payload
}

// Hash is the SHA-256 chain hash of a record. In JSON it is lower-case hex.
type Hash [32]byte

// MarshalText writes the hash as hex.
func (h Hash) MarshalText() ([]byte, error) {
	return []byte(hex.EncodeToString(h[:])), nil
}

// UnmarshalText reads 64 hex digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("read chain hash: got %d characters, want %d", len(text), hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	if err != nil {
		return fmt.Errorf("read chain hash: %w", err)
	}
	return nil
}

// String returns the hash as hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }
