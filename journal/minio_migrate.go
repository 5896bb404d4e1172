package journal

import "time"

// ActionMigrateMinio has the highly available MinIO take the place of the single one, with
// all data.
const ActionMigrateMinio ActionKind = "migrate-minio"

// Its steps: a look for objects below others; buckets, settings, users and policies; the objects, while the single one
// serves; what changed meanwhile, and a look at everything; the switch; that the highly
// available one serves for long enough; a look at what it lacks, where somebody else had the
// Service lead there; another look for objects below others; and the end of the single one.
const (
	StepCompareMinio          = "compare"
	StepPrepareMinio          = "prepare"
	StepCopyMinio             = "copy"
	StepCatchUpMinio          = "catch-up"
	StepCutOverMinio          = "cut-over"
	StepAwaitServedMinio      = "await-served"
	StepLookBelowAgainMinio   = "look-below-again"
	StepDeleteMinioDeployment = "delete-deployment"
	StepDeleteSingleClaim     = "delete-claim"
)

// StepCallOffMinio takes a switch back that did not come to its end.
const StepCallOffMinio = "call-off"

// MinioMigrate is what a migrate-minio is asked for with: what EKCO knows of what it did
// before.
type MinioMigrate struct {
	// Switched is set where it was EKCO that had the Service lead to the highly available
	// MinIO, and nobody had it lead elsewhere since; Unread where it did so without what the
	// single one had to the last.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment that the Service led to before EKCO's switch. What
	// another one has was never copied.
	From string `json:"from,omitempty"`
	// Version is the resource version that the Service had after that switch: while it has
	// that, nobody had it lead elsewhere meanwhile. Empty where it is not known.
	Version string `json:"version,omitempty"`
	// Ours is up to when EKCO copied to the highly available MinIO, which has not served
	// since: what was changed last before that is a copy. Zero if EKCO did not.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store that EKCO copied from then. What is there is no copy of
	// what another store has, as an empty volume is one.
	Source string `json:"source,omitempty"`
}

// MinioFound is what one of both has and the other has not, though it should: how many there
// are, some of their names, and when that was looked at.
type MinioFound struct {
	Count int       `json:"count,omitempty"`
	Names []string  `json:"names,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Store is the id of the store of the single one, empty where it was not looked at.
	Store string `json:"store,omitempty"`
}

// MinioCompared is what came of a look at what the highly available MinIO lacks.
type MinioCompared struct {
	MinioFound
	// Unread is set where the single one could not be looked at.
	Unread bool `json:"unread,omitempty"`
	// Version is the resource version that the Service had meanwhile.
	Version string `json:"version,omitempty"`
	// Done is set once nothing is lacking, or somebody went past that.
	Done bool `json:"done,omitempty"`
}

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
	// MinioMigrate is what it was asked for with.
	MinioMigrate
}

// MinioPrepared is what the first step leaves.
type MinioPrepared struct {
	// Source is the id of the store that the single MinIO had; one with another id is not
	// what is migrated.
	Source string `json:"source,omitempty"`
	// Version is the resource version that the Service had then, and led to that.
	Version  string `json:"version,omitempty"`
	Buckets  int64  `json:"buckets"`
	Versions int64  `json:"versions"`
	Bytes    int64  `json:"bytes"`
	// ThereVersions and ThereBytes are how much the highly available one had then, as an
	// earlier migration leaves it.
	ThereVersions int64 `json:"there_versions,omitempty"`
	ThereBytes    int64 `json:"there_bytes,omitempty"`
	// SourceRelease and TargetRelease are the versions of the servers.
	SourceRelease string `json:"source_release,omitempty"`
	TargetRelease string `json:"target_release,omitempty"`
	// NotCarried names what cannot be carried over.
	NotCarried []string `json:"not_carried,omitempty"`
	// Foreign is what the highly available one has that is not known to be a mere copy: nothing is
	// prepared before somebody went past that.
	Foreign MinioFound `json:"foreign,omitzero"`
	Done    bool       `json:"done,omitempty"`
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
	// Listed is how long it took to list and compare everything, without content.
	Listed Duration `json:"listed,omitzero"`
	// Sampled counts the bytes that were read on both sides.
	Sampled    int64    `json:"sampled,omitempty"`
	NotCarried []string `json:"not_carried,omitempty"`
	// Acting are the settings that act by themselves, by bucket and name, which are set last:
	// a switch that cannot ask the single MinIO any more sets these. Of Untold buckets they
	// are too long to be kept. Null is what an EKCO leaves that did not keep them.
	Acting map[string]map[string]string `json:"acting"`
	Untold int                          `json:"untold,omitempty"`
	// TooFast says at which rates the source changes, if that is too fast to catch up
	// with, or else why it is to be tried later, since when.
	TooFast      string    `json:"too_fast,omitempty"`
	TooFastSince time.Time `json:"too_fast_since,omitzero"`
}

// MinioCutOver is what the switch must know when it is interrupted.
type MinioCutOver struct {
	// Disabled is set from before the Service leads nowhere until it leads somewhere.
	Disabled bool `json:"disabled,omitempty"`
	// DisabledAt is when that was last, Resumed is set where an attempt went on that was
	// interrupted since.
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	Resumed    bool      `json:"resumed,omitempty"`
	// Pods are the UIDs of the pods that served until then, Controller that of what makes
	// another one in their place. Listed is set once they are known.
	Listed     bool     `json:"listed,omitempty"`
	Pods       []string `json:"pods,omitempty"`
	Controller string   `json:"controller,omitempty"`
	// Forced is what somebody has this attempt go past, empty for nothing. Forces counts the
	// attempts in which it was asked for: each needs a word of its own.
	Forced string `json:"forced,omitempty"`
	Forces int    `json:"forces,omitempty"`
	// Switches is set from when nothing speaks against the switch any more: that the Service
	// leads to the highly available MinIO then is EKCO's doing. Until the switch was made or
	// taken back, its buckets may have settings that act by themselves.
	Switches bool `json:"switches,omitempty"`
	Settled  bool `json:"settled,omitempty"`
	// Version is the resource version that the Service had once it led there, and Back the
	// one that it had once it led back.
	Version string `json:"version,omitempty"`
	Back    string `json:"back,omitempty"`
	// Away is the one that it had while it led nowhere, empty where that is not known. Touched is
	// set where somebody else changed it meanwhile: it may have led to the highly available MinIO,
	// and what clients wrote there is no copy.
	Away    string `json:"away,omitempty"`
	Touched bool   `json:"touched,omitempty"`
	// Unread is set where the switch went without the last that the single MinIO had.
	Unread bool `json:"unread,omitempty"`
	// Uncarried is what ha-minio cannot take, as a hold showed it: a person must release it before the switch.
	Uncarried MinioFound `json:"uncarried,omitzero"`
	// Lost is what the single MinIO lacks, and no client was heard to remove, as a hold showed it: a person must
	// release it before the switch. Aside names what was set aside on ha-minio instead.
	Lost  MinioFound `json:"lost,omitzero"`
	Aside []string   `json:"aside,omitempty"`
	// Shrunk is what an earlier EKCO left in place of Lost.
	Shrunk string `json:"shrunk,omitempty"`
	// Tries counts how often the Service led nowhere in vain. FailedAt and Error say when it
	// was tried last, and why it did not come to its end.
	Tries    int       `json:"tries,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Error    string    `json:"error,omitempty"`
}
