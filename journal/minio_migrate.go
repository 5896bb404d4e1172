package journal

import "time"

// ActionMigrateMinio has the highly available MinIO take the place of the single one, with
// all data. It has no input.
const ActionMigrateMinio ActionKind = "migrate-minio"

// Its steps: buckets, settings, users and policies; the objects, while the single one
// serves; what changed meanwhile, and a look at everything; the switch; that the highly
// available one serves for long enough; and the end of the single one.
const (
	StepPrepareMinio          = "prepare"
	StepCopyMinio             = "copy"
	StepCatchUpMinio          = "catch-up"
	StepCutOverMinio          = "cut-over"
	StepAwaitServedMinio      = "await-served"
	StepDeleteMinioDeployment = "delete-deployment"
	StepDeleteSingleClaim     = "delete-claim"
)

// StepCallOffMinio takes a switch back that did not come to its end.
const StepCallOffMinio = "call-off"

// MinioMigratePlan is what a migration needs to know to its end.
type MinioMigratePlan struct {
	// Deployment and Claim are the UIDs of those of the single MinIO. It need not have a
	// claim.
	Deployment string `json:"deployment"`
	Claim      string `json:"claim,omitempty"`
	// Pod is what served when it was planned; empty where only the end of the single one
	// is left to do.
	Pod *MinioPod `json:"pod,omitempty"`
	// HandOver is set where the Service leads to the highly available one already: then
	// that has the newest data, and nothing is copied.
	HandOver bool `json:"hand_over,omitempty"`
}

// MinioPrepared is what the first step leaves.
type MinioPrepared struct {
	Buckets  int64 `json:"buckets"`
	Versions int64 `json:"versions"`
	Bytes    int64 `json:"bytes"`
	// NotCarried names what cannot be carried over.
	NotCarried []string `json:"not_carried,omitempty"`
}

// MinioCopied is how far the copy is, and what it could not carry.
type MinioCopied struct {
	// Bucket, Key and BucketDone say up to where all is done, in the order of buckets
	// and keys.
	Bucket     string `json:"bucket,omitempty"`
	Key        string `json:"key,omitempty"`
	BucketDone bool   `json:"bucket_done,omitempty"`
	// Versions and Bytes are how much that was.
	Versions   int64    `json:"versions"`
	Bytes      int64    `json:"bytes"`
	NotCarried []string `json:"not_carried,omitempty"`
	Complete   bool     `json:"complete,omitempty"`
}

// MinioCaughtUp is what the last look at everything found.
type MinioCaughtUp struct {
	// VerifiedAt is when all was the same on both sides, but for what changed meanwhile.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	Versions   int64     `json:"versions"`
	// Sampled counts the bytes that were read on both sides.
	Sampled    int64    `json:"sampled,omitempty"`
	NotCarried []string `json:"not_carried,omitempty"`
	// TooFast says at which rates the source changes, if that is too fast to catch up
	// with, since when.
	TooFast      string    `json:"too_fast,omitempty"`
	TooFastSince time.Time `json:"too_fast_since,omitzero"`
}

// MinioCutOver is what the switch must know when it is interrupted.
type MinioCutOver struct {
	// Disabled is set from before the Service leads nowhere until it leads somewhere.
	Disabled bool `json:"disabled,omitempty"`
	// Pod is the UID of the pod that served until then, Controller that of what makes
	// another one in its place.
	Pod        string `json:"pod,omitempty"`
	Controller string `json:"controller,omitempty"`
	// NotCarried names what the last settings could not carry.
	NotCarried []string `json:"not_carried,omitempty"`
	// FailedAt and Error say when it was tried last in vain, and why.
	FailedAt time.Time `json:"failed_at,omitzero"`
	Error    string    `json:"error,omitempty"`
}
