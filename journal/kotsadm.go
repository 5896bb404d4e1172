package journal

import "fmt"

// ActionScaleKotsadm scales kotsadm's database, rqlite, to three replicas.
const ActionScaleKotsadm ActionKind = "scale-kotsadm"

// The steps of scale-kotsadm. StepScaleKotsadm changes the StatefulSet, and its outputs are the new facts.
// StepAwaitKotsadm waits until all replicas are ready.
const (
	StepScaleKotsadm = "scale"
	StepAwaitKotsadm = "await-replicas"
)

// KotsadmReplicas is the number of replicas that EKCO sets. At least as many nodes must be ready.
const KotsadmReplicas = 3

// KotsadmDatabase is the StatefulSet of the database.
var KotsadmDatabase = Subject{Kind: "StatefulSet", Name: "default/kotsadm-rqlite"}

// KotsadmFacts are the facts about the database that decisions use. Generation counts all changes of its spec.
type KotsadmFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
	// Expect is the value of the argument -bootstrap-expect, the number of members for which the database waits at its
	// start; empty without the argument.
	Expect string `json:"expect,omitempty"`
	Image  string `json:"image,omitempty"`
}

// Changes returns how often the database's spec was changed.
func (f KotsadmFacts) Changes() int64 { return f.Generation }

// WithUID returns a copy of f in which uid is the UID of the StatefulSet.
func (f KotsadmFacts) WithUID(uid string) KotsadmFacts {
	f.UID = uid
	return f
}

// Scaled reports whether the database's spec has KotsadmReplicas replicas, and -bootstrap-expect does not contradict.
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
