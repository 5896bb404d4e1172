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
	// be before the time of the previous event, if the clock was set or another EKCO wrote that event.
	Time time.Time `json:"time"`
	// Type and Version determine the type of the payload; see [Catalog].
	Type    Type `json:"type"`
	Version int  `json:"v"`
	// Subject is the object the event is about.
	Subject Subject `json:"subject"`
	// Action is the id of the action the event belongs to, or empty.
	Action string `json:"action,omitempty"`
	// Cause is the sequence number of the event that caused this event, or 0.
	Cause uint64 `json:"cause,omitempty"`
	// Actor is the program or person that caused the event: "operator", "observer/node", "cli:<user>@<host>".
	Actor string `json:"actor"`
	// Payload is a JSON object. [Catalog] lists its type.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Hash is the hash of this record and of the record before it; see README.md.
	Hash Hash `json:"hash"`
}

// Subject names the object an event is about.
type Subject struct {
	// Kind is a Kubernetes kind such as "Node", or a kind that only EKCO has, such as "Cluster" or "Journal".
	Kind string `json:"kind"`
	// Name is the object's name; "namespace/name" for a namespaced object.
	Name string `json:"name,omitempty"`
	// UID is the object's UID. Objects with the same name and different UIDs are different objects.
	UID string `json:"uid,omitempty"`
	// Node is the name of the object's node; for a Node its own name. "ekco history --node" filters by it.
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

// Subjects of events that are not about one object of the cluster.
var (
	ClusterSubject  = Subject{Kind: "Cluster"}
	OperatorSubject = Subject{Kind: "Operator"}
	JournalSubject  = Subject{Kind: "Journal"}
)

// Draft is an event that is not appended yet. The journal adds the sequence number, the time and the hash.
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
