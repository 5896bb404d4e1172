package journal

import "time"

// ActionScaleMinio scales the highly available MinIO to the replicas that an annotation of its StatefulSet requests.
// Its input is a [MinioScale].
const ActionScaleMinio ActionKind = "scale-minio"

// Its steps: the change, whose outputs are the facts of MinIO after it, and the wait until all replicas are ready and
// MinIO is healthy.
const (
	StepScaleMinio = "scale"
	StepAwaitMinio = "await-replicas"
)

// ActionRepairMinio points Service minio to pods again after an EKCO disabled it and did not finish. Its input is a
// [MinioRepair].
const ActionRepairMinio ActionKind = "repair-minio"

// StepPointMinio is its step.
const StepPointMinio = "point-service"

// ActionMoveMinio deletes a replica's pod and volume, so that Kubernetes creates new ones. Its input is a
// [MinioMove].
const ActionMoveMinio ActionKind = "move-minio"

// Its steps: a search for objects below others; a scan by MinIO whether all data is on all drives, where the replica
// runs; the deletion of the claim and of the pod, and the wait for another pod until MinIO restores no more data; and
// another scan by MinIO, since the end of a restore does not prove that all data is there. The outputs of the scans
// are a [MinioLooked].
const (
	StepLookBelowMinio   = "look-below"
	StepLookBeforeMinio  = "look-before"
	StepDeleteMinioClaim = "delete-claim"
	StepDeleteMinioPod   = "delete-pod"
	StepAwaitMinioPod    = "await-replica"
	StepLookAfterMinio   = "look-after"
)

// MinioLooked is when MinIO found all items on all drives, and their number: buckets, versions, and its own items.
// Restored of them were missing somewhere.
type MinioLooked struct {
	// At is zero until that is known.
	At       time.Time `json:"at,omitzero"`
	Items    int64     `json:"items"`
	Restored int64     `json:"restored,omitempty"`
	// Lives are the ids of the replicas' server processes during the whole scan, by name: each start of a server has
	// a new one.
	Lives map[string]string `json:"lives,omitempty"`
	// Pass is the id of the running scan on the server of that replica.
	Pass    string `json:"pass,omitempty"`
	Replica string `json:"replica,omitempty"`
	// Lacks says for people what the last scan found wrong, and Key identifies that. Since is its time, and Tries the
	// number of failed scans.
	Lacks string    `json:"lacks,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Tries int       `json:"tries,omitempty"`
}

// MinioReadyNodes is how many ready nodes the highly available MinIO needs.
const MinioReadyNodes = 3

// MinioKind is the kind of MinIO in a namespace as a subject.
const MinioKind = "MinIO"

// MinioSubject is MinIO in a namespace, with the UID of StatefulSet ha-minio there.
func MinioSubject(namespace, uid string) Subject {
	return Subject{Kind: MinioKind, Name: namespace + "/ha-minio", UID: uid}
}

// MinioFacts is what EKCO judges MinIO by.
type MinioFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of the StatefulSet's spec by any client, and Replicas is from the spec. Desired
	// is what its annotation requests from EKCO.
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
	Desired    int   `json:"desired"`
	// Deployment is the UID of the Deployment of the standalone MinIO, empty if there is none.
	Deployment string       `json:"deployment,omitempty"`
	Service    MinioService `json:"service,omitempty"`
	// Pods are the existing replicas, in order.
	Pods []MinioPod `json:"pods,omitempty"`
	// Health is what the running replicas report of the whole MinIO, empty if EKCO did not ask.
	Health MinioHealth `json:"health,omitempty"`
}

// MinioHealth is the health of the highly available MinIO.
type MinioHealth string

// The values of MinioHealth.
const (
	MinioHealthy MinioHealth = "healthy"
	// MinioRestores: it is healthy, and restores the data of a drive.
	MinioRestores MinioHealth = "healthy, and restores the data of a new volume"
	// MinioUnhealthy: too few drives are online to write.
	MinioUnhealthy MinioHealth = "not healthy: too few of its drives are there to write"
	// MinioSilent: no replica answers.
	MinioSilent MinioHealth = "silent: no replica answers"
)

// MinioService is what Service minio selects; empty if there is no such Service.
type MinioService string

// The values of MinioService.
const (
	// MinioServiceSingle is the standalone MinIO, MinioServiceHA the highly available one.
	MinioServiceSingle MinioService = "minio"
	MinioServiceHA     MinioService = "ha-minio"
	// MinioServiceDisabled selects no pods, as EKCO sets it; MinioServiceInstaller selects no pods, as kURL's
	// installer sets it.
	MinioServiceDisabled  MinioService = "nowhere"
	MinioServiceInstaller MinioService = "nowhere, for the installer"
	// MinioServiceOther is any other selector.
	MinioServiceOther MinioService = "something else"
)

// MinioPod is a replica.
type MinioPod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Node is empty while it has none.
	Node  string        `json:"node,omitempty"`
	State MinioPodState `json:"state"`
}

// MinioPodState is the state of a replica.
type MinioPodState string

// The values of MinioPodState.
const (
	MinioPodRuns MinioPodState = "runs"
	// MinioPodEnds: it has a deletion timestamp.
	MinioPodEnds MinioPodState = "ends"
	// MinioPodWaits: it has not started.
	MinioPodWaits MinioPodState = "waits"
	// MinioPodLacksVolume: it has not started because no node has its volume.
	MinioPodLacksVolume MinioPodState = "lacks its volume"
	// MinioPodEnded: its containers have ended.
	MinioPodEnded MinioPodState = "ended"
)

// MinioScale is the input of a scale-minio.
type MinioScale struct {
	Replicas int `json:"replicas"`
}

// MinioRepair is the input of a repair-minio: what Service minio is to select.
type MinioRepair struct {
	To MinioService `json:"to"`
	// Taken is the UID of a Deployment whose data EKCO has migrated: the Service is to select ha-minio although the
	// Deployment exists. Empty if there is none.
	Taken string `json:"taken,omitempty"`
}

// MinioMove is the input of a move-minio: the pod at that time. A running pod is moved for an even spread.
type MinioMove struct {
	Pod MinioPod `json:"pod"`
}

// MinioMovePlan has the facts that a move needs to finish.
type MinioMovePlan struct {
	Pod MinioPod `json:"pod"`
	// Claim is the UID of the pod's claim, empty if it no longer had one.
	Claim string `json:"claim,omitempty"`
}

// MinioScaled is the spec of the StatefulSet after it was scaled.
type MinioScaled struct {
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
}
