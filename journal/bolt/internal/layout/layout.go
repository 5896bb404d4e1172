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

// Key returns the key of a number; keys are in the order of the numbers.
func Key(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, keySize), number)
}

// Number reads a [Key].
func Number(key []byte) (uint64, error) {
	if len(key) != keySize {
		return 0, fmt.Errorf("key %x is not a number of %d bytes: %w", key, keySize, journal.ErrDamaged)
	}
	return binary.BigEndian.Uint64(key), nil
}

// Identity identifies the journal of a file.
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

// Gap is a range of events that retention moved out. LastHash lets the chain
// be verified across it.
type Gap struct {
	First    uint64       `json:"first"`
	Last     uint64       `json:"last"`
	LastHash journal.Hash `json:"last_hash"`
}

// Head is the end of the journal.
type Head struct {
	Seq  uint64
	Hash journal.Hash
}

// Encode returns the stored bytes.
func (h Head) Encode() []byte { return append(Key(h.Seq), h.Hash[:]...) }

// DecodeHead reads what [Head.Encode] wrote. It does not check that the event exists.
func DecodeHead(value []byte) (h Head, err error) {
	if len(value) != keySize+len(h.Hash) {
		return h, fmt.Errorf("head of the journal has %d bytes, want %d: %w", len(value), keySize+len(h.Hash), journal.ErrDamaged)
	}
	h.Seq = binary.BigEndian.Uint64(value)
	copy(h.Hash[:], value[keySize:])
	return h, nil
}

// seal writes v as a JSON object that ends with a hash of itself.
func seal(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	sealed, _ := journal.SealBody(journal.Hash{}, body[:len(body)-1])
	return sealed, nil
}

// Unseal checks and reads what [PutSealed] wrote; what names it in the error.
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

// PutSealed stores v as a JSON object that ends with a hash of itself.
func PutSealed(bucket *bbolt.Bucket, key []byte, v any) error {
	value, err := seal(v)
	if err != nil {
		return err
	}
	return bucket.Put(key, value)
}

// Tables are the buckets of one transaction.
type Tables struct {
	Records, Index, Gaps, Meta, Snapshot *bbolt.Bucket
}

// TablesOf returns the buckets of a transaction, all of which must exist.
func TablesOf(tx *bbolt.Tx) (Tables, error) {
	t := Tables{
		Records: tx.Bucket(RecordsBucket), Index: tx.Bucket(IndexBucket), Gaps: tx.Bucket(GapsBucket),
		Meta: tx.Bucket(MetaBucket), Snapshot: tx.Bucket(SnapshotBucket),
	}
	if t.Records == nil || t.Index == nil || t.Gaps == nil || t.Meta == nil || t.Snapshot == nil {
		return Tables{}, fmt.Errorf("a bucket is missing: %w", journal.ErrDamaged)
	}
	// Keys are added in order, so pages can be filled.
	t.Records.FillPercent, t.Index.FillPercent = 1, 1
	return t, nil
}

// CreateTables creates the buckets in an empty file, and stores the identity. The caller must add a head.
func CreateTables(tx *bbolt.Tx, id Identity) error {
	for _, name := range [][]byte{RecordsBucket, IndexBucket, GapsBucket, MetaBucket, SnapshotBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return PutSealed(tx.Bucket(MetaBucket), IdentityKey, id)
}
