package bolt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// The buckets of format 1 and the fixed keys in them.
var (
	recordsBucket  = []byte("records")  // sequence number → record
	indexBucket    = []byte("index")    // block number → block
	gapsBucket     = []byte("gaps")     // last missing sequence number → gap
	metaBucket     = []byte("meta")     // identity, head
	snapshotBucket = []byte("snapshot") // head, state

	identityKey      = []byte("identity")
	headKey          = []byte("head")
	snapshotHeadKey  = []byte("head")
	snapshotStateKey = []byte("state")
)

const keySize = 8

func key(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, keySize), number)
}

func number(key []byte) (uint64, error) {
	if len(key) != keySize {
		return 0, fmt.Errorf("key %x is not a number of %d bytes: %w", key, keySize, journal.ErrDamaged)
	}
	return binary.BigEndian.Uint64(key), nil
}

// identity says which journal a file holds.
type identity struct {
	Format     int    `json:"format"`
	JournalID  string `json:"journal_id"`
	ClusterUID string `json:"cluster_uid,omitempty"`
}

// gap is a range of events that retention moved out. LastHash lets the chain
// be verified across it.
type gap struct {
	First    uint64       `json:"first"`
	Last     uint64       `json:"last"`
	LastHash journal.Hash `json:"last_hash"`
}

// head is the end of the journal.
type head struct {
	seq  uint64
	hash journal.Hash
}

func (h head) encode() []byte { return append(key(h.seq), h.hash[:]...) }

func decodeHead(value []byte) (h head, err error) {
	if len(value) != keySize+len(h.hash) {
		return h, fmt.Errorf("head of the journal has %d bytes, want %d: %w", len(value), keySize+len(h.hash), journal.ErrDamaged)
	}
	h.seq = binary.BigEndian.Uint64(value)
	copy(h.hash[:], value[keySize:])
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

// unseal checks and reads what seal wrote.
func unseal(what string, sealed []byte, v any) error {
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

func putSealed(bucket *bbolt.Bucket, key []byte, v any) error {
	value, err := seal(v)
	if err != nil {
		return err
	}
	return bucket.Put(key, value)
}

// tables are the buckets of one transaction.
type tables struct {
	records, index, gaps, meta, snapshot *bbolt.Bucket
}

func tablesOf(tx *bbolt.Tx) (tables, error) {
	t := tables{
		records: tx.Bucket(recordsBucket), index: tx.Bucket(indexBucket), gaps: tx.Bucket(gapsBucket),
		meta: tx.Bucket(metaBucket), snapshot: tx.Bucket(snapshotBucket),
	}
	if t.records == nil || t.index == nil || t.gaps == nil || t.meta == nil || t.snapshot == nil {
		return tables{}, fmt.Errorf("a bucket is missing: %w", journal.ErrDamaged)
	}
	// Keys come in order, so pages can be filled.
	t.records.FillPercent, t.index.FillPercent = 1, 1
	return t, nil
}

func createTables(tx *bbolt.Tx, id identity) error {
	for _, name := range [][]byte{recordsBucket, indexBucket, gapsBucket, metaBucket, snapshotBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return putSealed(tx.Bucket(metaBucket), identityKey, id)
}
