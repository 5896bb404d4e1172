package journal

import "fmt"

// ActionScaleKotsadm scales kotsadm's database, rqlite, to three replicas.
const ActionScaleKotsadm ActionKind = "scale-kotsadm"

// Its steps: the change, whose outputs are the facts of the StatefulSet after it, and the wait until all replicas are
// ready.
const (
	StepScaleKotsadm = "scale"
	StepAwaitKotsadm = "await-replicas"
)

// KotsadmReplicas is how many replicas the database gets, and how many ready nodes that needs.
const KotsadmReplicas = 3

// KotsadmDatabase is the StatefulSet of the database.
var KotsadmDatabase = Subject{Kind: "StatefulSet", Name: "default/kotsadm-rqlite"}

// KotsadmFacts is what EKCO judges the database by. Generation counts the changes of its spec by any client.
type KotsadmFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
	// Expect is how many members the database waits for before it starts (-bootstrap-expect), empty if that is not
	// set.
	Expect string `json:"expect,omitempty"`
	Image  string `json:"image,omitempty"`
}

// Changes counts the changes of the database's spec.
func (f KotsadmFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the StatefulSet with that UID.
func (f KotsadmFacts) Of(uid string) KotsadmFacts {
	f.UID = uid
	return f
}

// Scaled reports whether the database's spec has all replicas.
func (f KotsadmFacts) Scaled() bool {
	return f.Replicas == KotsadmReplicas && (f.Expect == "" || f.Expect == fmt.Sprint(KotsadmReplicas))
}

// Size describes the replicas in the database's spec.
func (f KotsadmFacts) Size() string {
	if f.Expect == "" {
		return fmt.Sprint(f.Replicas)
	}
	return fmt.Sprintf("%d (-bootstrap-expect=%s)", f.Replicas, f.Expect)
}
