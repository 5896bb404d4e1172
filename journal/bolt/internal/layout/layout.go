package layout

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// The buckets of format 1 and the fixed keys in them.
var (
	RecordsBucket  = []byte("records")  // sequence number → record
	IndexBucket    = []byte("index")    // block number → block
	GapsBucket     = []byte("gaps")     // last missing sequence number → gap
	MetaBucket     = []byte("meta")     // identity, head
	SnapshotBucket = []byte("snapshot") // head, state

	IdentityKey      = []byte("identity")
	HeadKey          = []byte("head")
	snapshotHeadKey  = []byte("head")
	snapshotStateKey = []byte("state")
)

const keySize = 8

// Key returns the bucket key for a number. Keys have the same order as the numbers.
func Key(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, keySize), number)
}

// Number returns the number of a [Key].
func Number(key []byte) (uint64, error) {
	if len(key) != keySize {
		return 0, fmt.Errorf("key %x is not a number of %d bytes: %w", key, keySize, journal.ErrDamaged)
	}
	return binary.BigEndian.Uint64(key), nil
}

// Identity identifies the journal in a file, and its format.
type Identity struct {
	Format     int    `json:"format"`
	JournalID  string `json:"journal_id"`
	ClusterUID string `json:"cluster_uid,omitempty"`
}

// NewIdentity returns the identity of a new journal without a cluster.
func NewIdentity() Identity {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return Identity{Format: journal.Format, JournalID: hex.EncodeToString(random[:])}
}

// Gap is a range of events that retention moved out. LastHash is the hash of its last event, which is needed to check
// the hash of the event after the gap.
type Gap struct {
	First    uint64       `json:"first"`
	Last     uint64       `json:"last"`
	LastHash journal.Hash `json:"last_hash"`
}

// Head is the number and the hash of the journal's last event.
type Head struct {
	Seq  uint64
	Hash journal.Hash
}

// Encode returns the stored bytes of the head.
func (h Head) Encode() []byte { return append(Key(h.Seq), h.Hash[:]...) }

// DecodeHead reads the bytes that [Head.Encode] returned. It does not check that the event exists.
func DecodeHead(value []byte) (h Head, err error) {
	if len(value) != keySize+len(h.Hash) {
		return h, fmt.Errorf("head of the journal has %d bytes, want %d: %w", len(value), keySize+len(h.Hash), journal.ErrDamaged)
	}
	h.Seq = binary.BigEndian.Uint64(value)
	copy(h.Hash[:], value[keySize:])
	return h, nil
}

// seal returns v as a JSON object with a hash of its other members as the last member.
func seal(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	sealed, _ := journal.SealBody(journal.Hash{}, body[:len(body)-1])
	return sealed, nil
}

// Unseal checks the hash of a value that [PutSealed] stored, and decodes the value into v. what is the value's name in
// errors.
func Unseal(what string, sealed []byte, v any) error {
	if sealed == nil {
		return fmt.Errorf("%s is missing: %w", what, journal.ErrDamaged)
	}
	if _, err := journal.CheckRecord(journal.Hash{}, sealed); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := json.Unmarshal(sealed, v); err != nil {
		return fmt.Errorf("%s: %w: %w", what, err, journal.ErrDamaged)
	}
	return nil
}

// PutSealed stores v as a JSON object with a hash of its other members, so that [Unseal] can detect damage.
func PutSealed(bucket *bbolt.Bucket, key []byte, v any) error {
	value, err := seal(v)
	if err != nil {
		return err
	}
	return bucket.Put(key, value)
}

// Tables are the buckets of a journal, in one transaction.
type Tables struct {
	Records, Index, Gaps, Meta, Snapshot *bbolt.Bucket
}

// TablesOf returns the buckets for a transaction. It returns an error if one of them does not exist.
func TablesOf(tx *bbolt.Tx) (Tables, error) {
	t := Tables{
		Records: tx.Bucket(RecordsBucket), Index: tx.Bucket(IndexBucket), Gaps: tx.Bucket(GapsBucket),
		Meta: tx.Bucket(MetaBucket), Snapshot: tx.Bucket(SnapshotBucket),
	}
	if t.Records == nil || t.Index == nil || t.Gaps == nil || t.Meta == nil || t.Snapshot == nil {
		return Tables{}, fmt.Errorf("a bucket is missing: %w", journal.ErrDamaged)
	}
	// Keys are added in ascending order, so bbolt can fill pages completely.
	t.Records.FillPercent, t.Index.FillPercent = 1, 1
	return t, nil
}

// CreateTables creates the buckets in an empty file, and stores the identity. The caller must also store a head.
func CreateTables(tx *bbolt.Tx, id Identity) error {
	for _, name := range [][]byte{RecordsBucket, IndexBucket, GapsBucket, MetaBucket, SnapshotBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return PutSealed(tx.Bucket(MetaBucket), IdentityKey, id)
}
