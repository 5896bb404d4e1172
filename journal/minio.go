package journal

import "time"

// ActionScaleMinio gives the highly available MinIO as many replicas as its StatefulSet
// says that it shall have. Its input is a [MinioScale].
const ActionScaleMinio ActionKind = "scale-minio"

// Its steps: the change, which leaves the facts of MinIO as it is then, and that all
// replicas are ready and MinIO is healthy.
const (
	StepScaleMinio = "scale"
	StepAwaitMinio = "await-replicas"
)

// ActionRepairMinio has Service minio lead somewhere again after an EKCO disabled it and
// did not come to its end. Its input is a [MinioRepair].
const ActionRepairMinio ActionKind = "repair-minio"

// StepPointMinio is its step.
const StepPointMinio = "point-service"

// ActionMoveMinio takes a replica's pod and volume away, so that Kubernetes gives it new ones.
// Its input is a [MinioMove].
const ActionMoveMinio ActionKind = "move-minio"

// Its steps: a look for objects below others; MinIO looks whether all data is on all drives, where the replica runs; the claim
// and the pod are deleted, and another pod is waited for, until MinIO restores nothing any
// more; and MinIO looks once more, since that it restores nothing does not say that all is
// there. The looks leave a [MinioLooked].
const (
	StepLookBelowMinio   = "look-below"
	StepLookBeforeMinio  = "look-before"
	StepDeleteMinioClaim = "delete-claim"
	StepDeleteMinioPod   = "delete-pod"
	StepAwaitMinioPod    = "await-replica"
	StepLookAfterMinio   = "look-after"
)

// MinioLooked is when MinIO had found all it keeps on all drives, and how many things that
// were: buckets, versions, and what it keeps for itself. Of those so many had to be restored.
type MinioLooked struct {
	// At is none as long as that is not known.
	At       time.Time `json:"at,omitzero"`
	Items    int64     `json:"items"`
	Restored int64     `json:"restored,omitempty"`
	// Lives are those that the replicas had all the while, by name: another one each time that
	// a server was started.
	Lives map[string]string `json:"lives,omitempty"`
	// Pass is what the server of that replica knows the look by that is under way.
	Pass    string `json:"pass,omitempty"`
	Replica string `json:"replica,omitempty"`
	// Lacks says for people what the last look found wrong, and Key what that is about, at
	// Since, which was the Tries-th look in vain.
	Lacks string    `json:"lacks,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Tries int       `json:"tries,omitempty"`
}

// MinioReadyNodes is how many ready nodes it takes.
const MinioReadyNodes = 3

// MinioKind is what MinIO in a namespace is called as a subject.
const MinioKind = "MinIO"

// MinioSubject is MinIO in a namespace, whose identity is the UID of the StatefulSet
// ha-minio there.
func MinioSubject(namespace, uid string) Subject {
	return Subject{Kind: MinioKind, Name: namespace + "/ha-minio", UID: uid}
}

// MinioFacts is what EKCO judges MinIO by.
type MinioFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of what is asked of the StatefulSet, whoever made
	// them, and Replicas is what is asked. Desired is what its annotation asks EKCO for.
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
	Desired    int   `json:"desired"`
	// Deployment is the UID of that of the single MinIO, empty if there is none.
	Deployment string       `json:"deployment,omitempty"`
	Service    MinioService `json:"service,omitempty"`
	// Pods are the replicas that there are, in order.
	Pods []MinioPod `json:"pods,omitempty"`
	// Health is what those that run say of all together, empty where nobody was asked.
	Health MinioHealth `json:"health,omitempty"`
}

// MinioHealth is how the highly available MinIO is.
type MinioHealth string

// How it may be.
const (
	MinioHealthy MinioHealth = "healthy"
	// MinioRestores: it is healthy, and restores the data of a drive.
	MinioRestores MinioHealth = "healthy, and restores the data of a new volume"
	// MinioUnhealthy: too few drives are there to write.
	MinioUnhealthy MinioHealth = "not healthy: too few of its drives are there to write"
	// MinioSilent: no replica answers.
	MinioSilent MinioHealth = "silent: no replica answers"
)

// MinioService is where Service minio leads; empty if there is no such Service.
type MinioService string

// Where it may lead.
const (
	// MinioServiceSingle is the single MinIO, MinioServiceHA the highly available one.
	MinioServiceSingle MinioService = "minio"
	MinioServiceHA     MinioService = "ha-minio"
	// MinioServiceDisabled is nowhere, as EKCO says it, and MinioServiceInstaller
	// nowhere, as kURL's installer does.
	MinioServiceDisabled  MinioService = "nowhere"
	MinioServiceInstaller MinioService = "nowhere, for the installer"
	// MinioServiceOther is something else.
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

// MinioPodState is what a replica does.
type MinioPodState string

// What it may do.
const (
	MinioPodRuns MinioPodState = "runs"
	// MinioPodEnds: somebody asked it to.
	MinioPodEnds MinioPodState = "ends"
	// MinioPodWaits: it has not started.
	MinioPodWaits MinioPodState = "waits"
	// MinioPodLacksVolume: it has not started because no node has its volume.
	MinioPodLacksVolume MinioPodState = "lacks its volume"
	// MinioPodEnded: its containers have.
	MinioPodEnded MinioPodState = "ended"
)

// MinioScale is what a scale-minio is asked for with.
type MinioScale struct {
	Replicas int `json:"replicas"`
}

// MinioRepair is what a repair-minio is asked for with: where Service minio shall lead.
type MinioRepair struct {
	To MinioService `json:"to"`
	// Taken is the UID of a Deployment whose place ha-minio has taken, with all data: the Service
	// leads to that though it is there. Empty where EKCO knows of none.
	Taken string `json:"taken,omitempty"`
}

// MinioMove is what a move-minio is asked for with: the pod as it was then. One that runs is
// moved for an even spread.
type MinioMove struct {
	Pod MinioPod `json:"pod"`
}

// MinioMovePlan is what a move needs to know to its end.
type MinioMovePlan struct {
	Pod MinioPod `json:"pod"`
	// Claim is the UID of the claim that the pod had, empty if it had none any more.
	Claim string `json:"claim,omitempty"`
}

// MinioScaled is what the StatefulSet is asked for once it was scaled.
type MinioScaled struct {
	Generation int64 `json:"generation"`
	Replicas   int   `json:"replicas"`
}
