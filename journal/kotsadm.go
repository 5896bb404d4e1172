package journal

import "fmt"

// ActionScaleKotsadm gives kotsadm's database, rqlite, its three replicas.
const ActionScaleKotsadm ActionKind = "scale-kotsadm"

// Its steps: the change, which leaves the facts of the StatefulSet as it is then, and
// that all replicas are ready.
const (
	StepScaleKotsadm = "scale"
	StepAwaitKotsadm = "await-replicas"
)

// KotsadmReplicas is how many replicas the database shall have, and how many ready nodes
// that takes.
const KotsadmReplicas = 3

// KotsadmDatabase is the StatefulSet of the database.
var KotsadmDatabase = Subject{Kind: "StatefulSet", Name: "default/kotsadm-rqlite"}

// KotsadmFacts is what EKCO judges the database by. Generation counts the changes of what
// is asked of it, whoever made them.
type KotsadmFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
	// Expect is how many members the database waits for before it begins
	// (-bootstrap-expect), empty if nothing says so.
	Expect string `json:"expect,omitempty"`
	Image  string `json:"image,omitempty"`
}

// Changes counts the changes of what is asked of the database.
func (f KotsadmFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the StatefulSet with that UID.
func (f KotsadmFacts) Of(uid string) KotsadmFacts {
	f.UID = uid
	return f
}

// Scaled reports whether the database is asked to have its replicas.
func (f KotsadmFacts) Scaled() bool {
	return f.Replicas == KotsadmReplicas && (f.Expect == "" || f.Expect == fmt.Sprint(KotsadmReplicas))
}

// Size says how large the database is asked to be.
func (f KotsadmFacts) Size() string {
	if f.Expect == "" {
		return fmt.Sprint(f.Replicas)
	}
	return fmt.Sprintf("%d (-bootstrap-expect=%s)", f.Replicas, f.Expect)
}
