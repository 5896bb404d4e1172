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

// Bind decides for stores what [Store.BindCluster] asks: it returns the cluster
// that the journal belongs to from now on.
func Bind(journalID, bound, uid string) (string, error) {
	switch {
	case uid == "":
		return "", fmt.Errorf("bind journal %s to a cluster: the UID is empty", journalID)
	case bound != "" && bound != uid:
		return "", fmt.Errorf("journal %s is of cluster %s, this cluster is %s: %w; move the journal away or give another path",
			journalID, bound, uid, ErrOtherCluster)
	}
	return uid, nil
}
