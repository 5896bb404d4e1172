package journal

import "fmt"

// Format is the number of the stored format that README.md specifies.
const Format = 1

// CreatedDraft returns the first event of a new journal, for stores.
func CreatedDraft(journalID string) Draft {
	return Draft{
		Type: TypeJournalCreated, Subject: JournalSubject, Actor: "journal",
		Payload: JournalCreated{Format: Format, JournalID: journalID},
	}
}

// Bind implements [Store.BindCluster] for stores: it returns the cluster that the journal belongs to from now on.
func Bind(journalID, bound, uid string) (string, error) {
	switch {
	case uid == "":
		return "", fmt.Errorf("bind journal %s to a cluster: the UID is empty", journalID)
	case bound != "" && bound != uid:
		return "", &OtherClusterError{JournalID: journalID, Bound: bound, Asked: uid}
	}
	return uid, nil
}

// OtherClusterError has the cluster of a journal, and the cluster that it was opened for.
type OtherClusterError struct{ JournalID, Bound, Asked string }

// Error implements error.
func (o *OtherClusterError) Error() string {
	return fmt.Sprintf("journal %s is of cluster %s, this cluster is %s: %v; move the journal elsewhere or give another path",
		o.JournalID, o.Bound, o.Asked, ErrOtherCluster)
}

// Unwrap returns [ErrOtherCluster].
func (o *OtherClusterError) Unwrap() error { return ErrOtherCluster }
