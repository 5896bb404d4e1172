package journal

import "time"

// ActionScaleMinio scales the highly available MinIO to the number of replicas in an annotation of its StatefulSet. Its
// input is a [MinioScale].
const ActionScaleMinio ActionKind = "scale-minio"

// The steps of scale-minio. StepScaleMinio changes the StatefulSet, and its outputs are a [MinioScaled]. StepAwaitMinio
// waits until all replicas are ready and MinIO is healthy.
const (
	StepScaleMinio = "scale"
	StepAwaitMinio = "await-replicas"
)

// ActionRepairMinio makes Service minio select pods again, after an EKCO disabled the Service and did not finish. Its
// input is a [MinioRepair].
const ActionRepairMinio ActionKind = "repair-minio"

// StepPointMinio is the only step of repair-minio. It changes the selector of Service minio.
const StepPointMinio = "point-service"

// ActionMoveMinio deletes a replica's pod and volume, so that Kubernetes creates new ones. Its input is a
// [MinioMove].
const ActionMoveMinio ActionKind = "move-minio"

// The steps of move-minio, in this order: a search for objects whose key is below the key of another object; if the
// replica runs, a scan by MinIO whether all data is on all drives; the deletion of the claim; the deletion of the pod;
// the wait until a new pod runs and MinIO has restored its data; and another scan, because the end of a restore does
// not prove that all data is there. The outputs of both scans are a [MinioLooked].
const (
	StepLookBelowMinio   = "look-below"
	StepLookBeforeMinio  = "look-before"
	StepDeleteMinioClaim = "delete-claim"
	StepDeleteMinioPod   = "delete-pod"
	StepAwaitMinioPod    = "await-replica"
	StepLookAfterMinio   = "look-after"
)

// MinioLooked is the result of MinIO's scans. An item is a bucket, a version of an object, or a file that MinIO itself
// needs.
type MinioLooked struct {
	// At is when a scan found all items on all drives; zero before that. Items is their number, and Restored is how
	// many of them were missing on a drive and were restored.
	At       time.Time `json:"at,omitzero"`
	Items    int64     `json:"items"`
	Restored int64     `json:"restored,omitempty"`
	// Lives has the id of each replica's server process, by the replica's name. A server gets a new id at each start,
	// so the ids show whether a server was restarted during the scan.
	Lives map[string]string `json:"lives,omitempty"`
	// Pass is the id of the running scan, and Replica is the replica on whose server it runs.
	Pass    string `json:"pass,omitempty"`
	Replica string `json:"replica,omitempty"`
	// Lacks says for people what the last scan found wrong, and Key identifies this problem. Since is when the problem
	// was found, and Tries is the number of failed scans.
	Lacks string    `json:"lacks,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Tries int       `json:"tries,omitempty"`
}

// MinioReadyNodes is the minimum number of ready nodes for the highly available MinIO.
const MinioReadyNodes = 3

// MinioKind is the kind of the subject for MinIO in a namespace.
const MinioKind = "MinIO"

// MinioSubject returns the subject for MinIO in a namespace. uid is the UID of StatefulSet ha-minio in that namespace.
func MinioSubject(namespace, uid string) Subject {
	return Subject{Kind: MinioKind, Name: namespace + "/ha-minio", UID: uid}
}

// MinioFacts are the facts about MinIO that decisions use.
type MinioFacts struct {
	UID string `json:"-"`
	// Generation counts all changes of the StatefulSet's spec. Replicas is the number in the spec. Desired is the
	// number in the annotation by which a user requests replicas.
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
	Desired    int   `json:"desired"`
	// Deployment is the UID of the standalone MinIO's Deployment; empty if there is no such Deployment.
	Deployment string       `json:"deployment,omitempty"`
	Service    MinioService `json:"service,omitempty"`
	// Pods are the existing replicas, in order.
	Pods []MinioPod `json:"pods,omitempty"`
	// Health is the health of the whole MinIO, as the running replicas report it; empty if EKCO did not ask them.
	Health MinioHealth `json:"health,omitempty"`
}

// MinioHealth is the health of the highly available MinIO.
type MinioHealth string

// The values of MinioHealth.
const (
	MinioHealthy MinioHealth = "healthy"
	// MinioRestores: it is healthy, and writes missing data to a new volume.
	MinioRestores MinioHealth = "healthy, and restores the data of a new volume"
	// MinioUnhealthy: too few drives are online, so MinIO cannot write.
	MinioUnhealthy MinioHealth = "not healthy: too few of its drives are there to write"
	// MinioSilent: no replica answers.
	MinioSilent MinioHealth = "silent: no replica answers"
)

// MinioService says which pods Service minio selects; empty if the Service does not exist.
type MinioService string

// The values of MinioService.
const (
	// MinioServiceSingle selects the standalone MinIO, MinioServiceHA the highly available MinIO.
	MinioServiceSingle MinioService = "minio"
	MinioServiceHA     MinioService = "ha-minio"
	// MinioServiceDisabled selects no pods, because EKCO disabled the Service. MinioServiceInstaller selects no pods,
	// because kURL's installer disabled it.
	MinioServiceDisabled  MinioService = "nowhere"
	MinioServiceInstaller MinioService = "nowhere, for the installer"
	// MinioServiceOther is any other selector.
	MinioServiceOther MinioService = "something else"
)

// MinioPod is the pod of a replica.
type MinioPod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Node is empty until the pod is scheduled.
	Node  string        `json:"node,omitempty"`
	State MinioPodState `json:"state"`
}

// MinioPodState is the state of a replica.
type MinioPodState string

// The values of MinioPodState.
const (
	MinioPodRuns MinioPodState = "runs"
	// MinioPodEnds: the pod has a deletion timestamp.
	MinioPodEnds MinioPodState = "ends"
	// MinioPodWaits: the pod has not started.
	MinioPodWaits MinioPodState = "waits"
	// MinioPodLacksVolume: the pod has not started because no node has its volume.
	MinioPodLacksVolume MinioPodState = "lacks its volume"
	// MinioPodEnded: the pod's containers have ended.
	MinioPodEnded MinioPodState = "ended"
)

// MinioScale is the input of a scale-minio.
type MinioScale struct {
	Replicas int `json:"replicas"`
}

// MinioRepair is the input of a repair-minio.
type MinioRepair struct {
	// To says which pods Service minio must select.
	To MinioService `json:"to"`
	// Taken is the UID of a Deployment whose data EKCO has already migrated, so that the Service must select ha-minio
	// although the Deployment still exists. It is empty if there is no such Deployment.
	Taken string `json:"taken,omitempty"`
}

// MinioMove is the input of a move-minio: the pod to move, at the time of the request. EKCO moves a running pod only to
// spread the replicas evenly over the nodes.
type MinioMove struct {
	Pod MinioPod `json:"pod"`
}

// MinioMovePlan has the facts in the plan of a move-minio.
type MinioMovePlan struct {
	Pod MinioPod `json:"pod"`
	// Claim is the UID of the pod's PersistentVolumeClaim; empty if the claim was already deleted.
	Claim string `json:"claim,omitempty"`
}

// MinioScaled has the facts about the StatefulSet after EKCO scaled it.
type MinioScaled struct {
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
}
