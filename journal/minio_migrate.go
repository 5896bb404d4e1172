package journal

import "time"

// ActionMigrateMinio replaces the standalone MinIO by the highly available MinIO, and copies all data.
const ActionMigrateMinio ActionKind = "migrate-minio"

// The steps of migrate-minio. First [StepLookBelowMinio] searches for objects whose key is below the key of another
// object. StepPrepareMinio copies buckets, settings, users and policies. StepCopyMinio copies the objects, while the
// standalone MinIO still serves. StepCatchUpMinio copies later changes and compares everything. StepCutOverMinio makes
// the Service select the highly available MinIO, and StepAwaitServedMinio waits until that has served long enough.
// StepCompareMinio searches for data that the highly available MinIO lacks, if another client switched the Service.
// StepLookBelowAgainMinio repeats the search, StepCompareAgainMinio repeats the comparison if the standalone MinIO has
// changed since the switch. The last two steps delete the standalone MinIO.
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

// StepCallOffMinio undoes a StepCutOverMinio that did not finish: the Service selects the standalone MinIO again.
const StepCallOffMinio = "call-off"

// MinioMigrate is the input of a migrate-minio: the facts from EKCO's earlier migrations.
type MinioMigrate struct {
	// Switched is set if EKCO made the Service select the highly available MinIO, and no other client has changed the
	// selector since. Unread is set if EKCO did so without reading the last changes of the standalone MinIO.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment that the Service selected before EKCO's switch. EKCO has never copied the data
	// of any other Deployment.
	From string `json:"from,omitempty"`
	// Version is the resource version of the Service after EKCO's switch; empty if unknown. As long as the Service has
	// it, no client has changed the Service.
	Version string `json:"version,omitempty"`
	// Fingerprint is the fingerprint of all data that the standalone MinIO had at the switch. Target is the id of the
	// highly available MinIO's store, to which EKCO copied; empty if unknown.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Ours is when EKCO last copied data to the highly available MinIO, if no clients have used that MinIO since. All
	// older data in Target is a copy. Zero if EKCO did not copy.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store that EKCO copied from. If the standalone MinIO has another store now, for example
	// on a new volume, the copied data is not a copy of that store.
	Source string `json:"source,omitempty"`
}

// MinioFound lists items that one MinIO has and the other MinIO lacks. Names has only some of them.
type MinioFound struct {
	Count int       `json:"count,omitempty"`
	Names []string  `json:"names,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Store is the id of the standalone MinIO's store; empty if EKCO did not read the id.
	Store string `json:"store,omitempty"`
}

// MinioCompared is the result of a comparison: the items that the highly available MinIO lacks.
type MinioCompared struct {
	MinioFound
	// Unread is set if EKCO could not read the standalone MinIO.
	Unread bool `json:"unread,omitempty"`
	// Version is the resource version of the Service during the comparison.
	Version string `json:"version,omitempty"`
	// Fingerprint is the fingerprint of all data that the standalone MinIO had then. Target is the id of the highly
	// available MinIO's store.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Done is set once no item is missing, or a person has overridden the missing items.
	Done bool `json:"done,omitempty"`
}

// MinioMigratePlan has the facts in the plan of a migrate-minio.
type MinioMigratePlan struct {
	// Deployment and Claim are the UIDs of the standalone MinIO's Deployment and PersistentVolumeClaim. Claim is empty
	// if there is no claim.
	Deployment string `json:"deployment"`
	Claim      string `json:"claim,omitempty"`
	// Pod is the pod of the standalone MinIO that served at planning; nil if the plan only deletes the standalone
	// MinIO.
	Pod *MinioPod `json:"pod,omitempty"`
	// HandOver is set if the Service already selects the highly available MinIO. The highly available MinIO then has
	// the newest data, and EKCO copies nothing.
	HandOver bool `json:"hand_over,omitempty"`
	// MinioMigrate is the input.
	MinioMigrate
}

// MinioPrepared is the output of [StepPrepareMinio].
type MinioPrepared struct {
	// Source is the id of the standalone MinIO's store, Target the id of the highly available MinIO's store. EKCO does
	// not migrate from or to another store.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// Version is the resource version that the Service had at the preparation. The Service selected Source then.
	Version  string `json:"version,omitempty"`
	Buckets  int64  `json:"buckets"`
	Versions int64  `json:"versions"`
	Bytes    int64  `json:"bytes"`
	// ThereVersions and ThereBytes are the amount of data that the highly available MinIO already had at the
	// preparation, for example from an earlier migration.
	ThereVersions int64 `json:"there_versions,omitempty"`
	ThereBytes    int64 `json:"there_bytes,omitempty"`
	// SourceRelease and TargetRelease are the versions of the servers.
	SourceRelease string `json:"source_release,omitempty"`
	TargetRelease string `json:"target_release,omitempty"`
	// NotCarried names what EKCO cannot migrate.
	NotCarried []string `json:"not_carried,omitempty"`
	// Foreign lists the items on the highly available MinIO that may not be copies. EKCO prepares nothing until a
	// person overrides this.
	Foreign MinioFound `json:"foreign,omitzero"`
	Done    bool       `json:"done,omitempty"`
}

// MinioCopied is the progress of [StepCopyMinio]. NotCarried names what it could not copy.
type MinioCopied struct {
	// Bucket, Key and BucketDone are the position of the copy, in the order of buckets and keys.
	Bucket     string `json:"bucket,omitempty"`
	Key        string `json:"key,omitempty"`
	BucketDone bool   `json:"bucket_done,omitempty"`
	// Versions and Bytes are the amount of copied data.
	Versions   int64    `json:"versions"`
	Bytes      int64    `json:"bytes"`
	NotCarried []string `json:"not_carried,omitempty"`
	Complete   bool     `json:"complete,omitempty"`
}

// MinioCaughtUp is the output of [StepCatchUpMinio]: the result of the last comparison of all data.
type MinioCaughtUp struct {
	// VerifiedAt is when both MinIOs had the same data. The standalone MinIO may have changed since.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	Versions   int64     `json:"versions"`
	// Listed is how long it took to list all objects on both sides and compare the lists, without the objects' content.
	Listed Duration `json:"listed,omitzero"`
	// Sampled is how many bytes of content EKCO read on both sides to compare them.
	Sampled    int64    `json:"sampled,omitempty"`
	NotCarried []string `json:"not_carried,omitempty"`
	// Acting has the bucket settings that change objects automatically, by bucket and by name of the setting. EKCO sets
	// them last. They are recorded because a switch may have to set them when it cannot read the standalone MinIO. Null
	// means that an earlier EKCO did not record them. Untold is the number of buckets whose settings are too long to
	// record.
	Acting map[string]map[string]string `json:"acting"`
	Untold int                          `json:"untold,omitempty"`
	// TooFast says how fast the standalone MinIO changes, if EKCO cannot catch up with it, or why EKCO tries again later.
	// TooFastSince is when that began.
	TooFast      string    `json:"too_fast,omitempty"`
	TooFastSince time.Time `json:"too_fast_since,omitzero"`
}

// MinioCutOver is the progress of [StepCutOverMinio], the switch.
type MinioCutOver struct {
	// Disabled is set right before EKCO makes the Service select no pods, until the Service selects pods again.
	Disabled bool `json:"disabled,omitempty"`
	// DisabledAt is when EKCO last made the Service select no pods. Resumed is set if an interrupted attempt has
	// continued since.
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	Resumed    bool      `json:"resumed,omitempty"`
	// Pods are the UIDs of the pods that served until then. Controller is the UID of the object that creates new pods
	// in their place. Listed is set once Pods and Controller are known.
	Listed     bool     `json:"listed,omitempty"`
	Pods       []string `json:"pods,omitempty"`
	Controller string   `json:"controller,omitempty"`
	// Forced says what a person overrode for this attempt; empty if nothing. Forces is the number of attempts with an
	// override. A person must override again for each attempt.
	Forced string `json:"forced,omitempty"`
	Forces int    `json:"forces,omitempty"`
	// Switches is set once all checks allow the switch. If the Service selects the highly available MinIO after that,
	// EKCO caused it. Until the switch is done or undone, the buckets of the highly available MinIO may have settings
	// that change objects automatically.
	Switches bool `json:"switches,omitempty"`
	Settled  bool `json:"settled,omitempty"`
	// Version is the resource version of the Service after the switch. Back is its resource version after EKCO switched
	// back.
	Version string `json:"version,omitempty"`
	Back    string `json:"back,omitempty"`
	// Away is the resource version of the Service while it selected no pods; empty if unknown. Touched is set if
	// another client changed the Service in that time. The Service may then have selected the highly available MinIO,
	// and data that clients wrote to it is not a copy.
	Away    string `json:"away,omitempty"`
	Touched bool   `json:"touched,omitempty"`
	// Fingerprint is the fingerprint of all data that the standalone MinIO had at the switch.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unread is set if EKCO switched without reading the last changes of the standalone MinIO.
	Unread bool `json:"unread,omitempty"`
	// Uncarried lists the items that ha-minio cannot store. A hold shows them, and a person must override it before the
	// switch.
	Uncarried MinioFound `json:"uncarried,omitzero"`
	// Lost lists the items that the standalone MinIO lacks although EKCO saw no client remove them. A hold shows them,
	// and a person must override it before the switch. Aside names the items that EKCO moved aside on ha-minio instead
	// of deleting them.
	Lost  MinioFound `json:"lost,omitzero"`
	Aside []string   `json:"aside,omitempty"`
	// Shrunk is the text that earlier versions recorded instead of Lost.
	Shrunk string `json:"shrunk,omitempty"`
	// Tries is the number of failed switches. FailedAt and Error are the time and the error of the last failed switch.
	Tries    int       `json:"tries,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Error    string    `json:"error,omitempty"`
}
