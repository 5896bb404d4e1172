package journal

import "time"

// ActionMigrateMinio replaces the standalone MinIO by the highly available one, with all data.
const ActionMigrateMinio ActionKind = "migrate-minio"

// Its steps: a search for objects below others; buckets, settings, users and policies; the objects, while the
// standalone MinIO serves; the changes since, and a comparison of everything; the switch; the wait until the highly
// available MinIO has served long enough; a comparison of what it lacks, if another client pointed the Service to it;
// another search for objects below others; another comparison, if the standalone MinIO has changed since the switch; and
// the deletion of the standalone MinIO.
const (
	StepCompareMinio          = "compare"
	StepPrepareMinio          = "prepare"
	StepCopyMinio             = "copy"
	StepCatchUpMinio          = "catch-up"
	StepCutOverMinio          = "cut-over"
	StepAwaitServedMinio      = "await-served"
	StepLookBelowAgainMinio   = "look-below-again"
	StepCompareAgainMinio     = "compare-again"
	StepDeleteMinioDeployment = "delete-deployment"
	StepDeleteSingleClaim     = "delete-claim"
)

// StepCallOffMinio switches back after a switch that did not finish.
const StepCallOffMinio = "call-off"

// MinioMigrate is the input of a migrate-minio: what EKCO knows of its earlier migrations.
type MinioMigrate struct {
	// Switched is set if EKCO pointed the Service to the highly available MinIO, and no other client changed that
	// since; Unread if EKCO switched without the last changes of the standalone MinIO.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment that the Service selected before EKCO's switch. The data of any other was
	// never copied.
	From string `json:"from,omitempty"`
	// Version is the resource version of the Service after that switch: while it has that, no client has changed it
	// since. Empty if unknown.
	Version string `json:"version,omitempty"`
	// Fingerprint is that of all that the standalone MinIO had at that switch, and Target the id of the highly
	// available MinIO's store, which had the same.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Ours is until when EKCO copied to the highly available MinIO, which has not served since: older data there is a
	// copy. Zero if EKCO did not copy.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store that EKCO copied from. Data from there is not a copy of another store's data,
	// such as an empty volume's.
	Source string `json:"source,omitempty"`
}

// MinioFound lists what one MinIO has and the other should have but lacks: the number, some names, and the time.
type MinioFound struct {
	Count int       `json:"count,omitempty"`
	Names []string  `json:"names,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Store is the id of the standalone MinIO's store, empty if EKCO did not read it.
	Store string `json:"store,omitempty"`
}

// MinioCompared is the result of a comparison of what the highly available MinIO lacks.
type MinioCompared struct {
	MinioFound
	// Unread is set if EKCO could not read the standalone MinIO.
	Unread bool `json:"unread,omitempty"`
	// Version is the resource version of the Service during the comparison.
	Version string `json:"version,omitempty"`
	// Fingerprint is that of all that the standalone MinIO had then, and Target the id of the highly available MinIO's
	// store.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Done is set once nothing is missing, or a person overrode that.
	Done bool `json:"done,omitempty"`
}

// MinioMigratePlan has the facts that a migration needs to finish.
type MinioMigratePlan struct {
	// Deployment and Claim are the UIDs of the standalone MinIO's. It may have no claim.
	Deployment string `json:"deployment"`
	Claim      string `json:"claim,omitempty"`
	// Pod is what served at planning; empty if only the deletion of the standalone MinIO is left.
	Pod *MinioPod `json:"pod,omitempty"`
	// HandOver is set if the Service already selects the highly available MinIO: then that has the newest data, and
	// EKCO copies nothing.
	HandOver bool `json:"hand_over,omitempty"`
	// MinioMigrate is the input.
	MinioMigrate
}

// MinioPrepared is the output of [StepPrepareMinio].
type MinioPrepared struct {
	// Source and Target are the ids of both stores, the standalone MinIO's and the highly available one's; EKCO does
	// not migrate from or to any other.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// Version is the resource version of the Service at that time, which selected that store.
	Version  string `json:"version,omitempty"`
	Buckets  int64  `json:"buckets"`
	Versions int64  `json:"versions"`
	Bytes    int64  `json:"bytes"`
	// ThereVersions and ThereBytes are how much the highly available MinIO had then, as after an earlier migration.
	ThereVersions int64 `json:"there_versions,omitempty"`
	ThereBytes    int64 `json:"there_bytes,omitempty"`
	// SourceRelease and TargetRelease are the versions of the servers.
	SourceRelease string `json:"source_release,omitempty"`
	TargetRelease string `json:"target_release,omitempty"`
	// NotCarried names what EKCO cannot migrate.
	NotCarried []string `json:"not_carried,omitempty"`
	// Foreign is what the highly available MinIO has that is not known to be a copy: nothing is prepared before a
	// person overrides that.
	Foreign MinioFound `json:"foreign,omitzero"`
	Done    bool       `json:"done,omitempty"`
}

// MinioCopied is the progress of the copy, and what it could not copy.
type MinioCopied struct {
	// Bucket, Key and BucketDone are the position of the copy, in the order of buckets and keys.
	Bucket     string `json:"bucket,omitempty"`
	Key        string `json:"key,omitempty"`
	BucketDone bool   `json:"bucket_done,omitempty"`
	// Versions and Bytes are the copied amount.
	Versions   int64    `json:"versions"`
	Bytes      int64    `json:"bytes"`
	NotCarried []string `json:"not_carried,omitempty"`
	Complete   bool     `json:"complete,omitempty"`
}

// MinioCaughtUp is the result of the last comparison of everything.
type MinioCaughtUp struct {
	// VerifiedAt is when both sides had the same, except for changes since.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	Versions   int64     `json:"versions"`
	// Listed is how long it took to list and compare everything, without content.
	Listed Duration `json:"listed,omitzero"`
	// Sampled counts the bytes that were read on both sides.
	Sampled    int64    `json:"sampled,omitempty"`
	NotCarried []string `json:"not_carried,omitempty"`
	// Acting are settings that change objects on their own, by bucket and name; they are set last. A switch that
	// cannot read the standalone MinIO sets these. Untold counts buckets whose settings are too long to record. Null
	// is the value of an EKCO that did not record them.
	Acting map[string]map[string]string `json:"acting"`
	Untold int                          `json:"untold,omitempty"`
	// TooFast says at which rates the source changes, if EKCO cannot catch up with it, or why EKCO retries later, and
	// TooFastSince since when.
	TooFast      string    `json:"too_fast,omitempty"`
	TooFastSince time.Time `json:"too_fast_since,omitzero"`
}

// MinioCutOver is what the switch must know after an interruption.
type MinioCutOver struct {
	// Disabled is set from before the Service selects no pods until it selects pods again.
	Disabled bool `json:"disabled,omitempty"`
	// DisabledAt is the time of the last such change. Resumed is set if an interrupted attempt continued since.
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	Resumed    bool      `json:"resumed,omitempty"`
	// Pods are the UIDs of the pods that served until then, Controller that of the object that replaces them. Listed
	// is set once they are known.
	Listed     bool     `json:"listed,omitempty"`
	Pods       []string `json:"pods,omitempty"`
	Controller string   `json:"controller,omitempty"`
	// Forced says what a person overrode for this attempt, empty for nothing. Forces counts the attempts with an
	// override: each needs its own.
	Forced string `json:"forced,omitempty"`
	Forces int    `json:"forces,omitempty"`
	// Switches is set once no check is against the switch: if the Service then selects the highly available MinIO,
	// EKCO did that. Until the switch is done or undone, its buckets may have settings that change objects on their
	// own.
	Switches bool `json:"switches,omitempty"`
	Settled  bool `json:"settled,omitempty"`
	// Version is the resource version of the Service after the switch, and Back the one after switching back.
	Version string `json:"version,omitempty"`
	Back    string `json:"back,omitempty"`
	// Away is the one while the Service selected no pods, empty if unknown. Touched is set if another client changed
	// the Service during that: it may have selected the highly available MinIO, and data that clients wrote there is
	// not a copy.
	Away    string `json:"away,omitempty"`
	Touched bool   `json:"touched,omitempty"`
	// Fingerprint is that of all that the standalone MinIO had then.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unread is set if the switch went without the last changes of the standalone MinIO.
	Unread bool `json:"unread,omitempty"`
	// Uncarried is what ha-minio cannot store, as shown by a hold: a person must release it before the switch.
	Uncarried MinioFound `json:"uncarried,omitzero"`
	// Lost is what the standalone MinIO lacks although EKCO saw no client remove it, as shown by a hold: a person
	// must release it before the switch. Aside names what EKCO moved aside on ha-minio instead.
	Lost  MinioFound `json:"lost,omitzero"`
	Aside []string   `json:"aside,omitempty"`
	// Shrunk is what an earlier EKCO recorded instead of Lost.
	Shrunk string `json:"shrunk,omitempty"`
	// Tries counts failed switches. FailedAt and Error are the time and the error of the last one.
	Tries    int       `json:"tries,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Error    string    `json:"error,omitempty"`
}
