package journal

import "fmt"

// Format is the number of the stored format that README.md specifies.
const Format = 1

// CreatedDraft returns the first event of a new journal. Implementations of [Store] use it.
func CreatedDraft(journalID string) Draft {
	return Draft{
		Type: TypeJournalCreated, Subject: JournalSubject, Actor: "journal",
		Payload: JournalCreated{Format: Format, JournalID: journalID},
	}
}

// Bind returns the UID of the cluster that the journal belongs to from now on. bound is the cluster that it belonged to
// before, or "". Implementations of [Store.BindCluster] use it.
func Bind(journalID, bound, uid string) (string, error) {
	switch {
	case uid == "":
		return "", fmt.Errorf("bind journal %s to a cluster: the UID is empty", journalID)
	case bound != "" && bound != uid:
		return "", &OtherClusterError{JournalID: journalID, Bound: bound, Asked: uid}
	}
	return uid, nil
}

// OtherClusterError is the error for a journal of cluster Bound that was opened in cluster Asked.
type OtherClusterError struct{ JournalID, Bound, Asked string }

// Error implements error.
func (o *OtherClusterError) Error() string {
	return fmt.Sprintf("journal %s belongs to cluster %s, but this cluster is %s: %v; move the journal elsewhere or give another path",
		o.JournalID, o.Bound, o.Asked, ErrOtherCluster)
}

// Unwrap returns [ErrOtherCluster].
func (o *OtherClusterError) Unwrap() error { return ErrOtherCluster }
