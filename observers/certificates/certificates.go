// Package certificates is the source of facts about certificates. It reads Secrets at intervals, and at once when one
// has changed. It reads the CAs' files on the primary on which EKCO runs, because they are the same on all primaries.
package certificates

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Reader reads the certificates in Secrets.
type Reader interface {
	Read(ctx context.Context, of journal.Subject) (journal.CertificateFacts, error)
	// Clock returns an error if the clock may be too wrong to decide which certificates must be renewed.
	Clock() error
}

// filesInterval is long because these files change once in ten years.
const filesInterval = time.Hour

// New returns one source for each subject, so that no source delays another. dir is the directory of the files. known
// has the facts in the journal, by name.
func New(secretsOf Reader, dir string, known map[string]journal.CertificateFacts) (ofSecrets, ofFiles []observers.Source) {
	for _, of := range secrets.Subjects() {
		ofSecrets = append(ofSecrets, observers.PollOne(observers.PolledOne[journal.CertificateFacts]{
			Machine: machine, Subject: of, Known: known, UID: noUID,
			Get: func(ctx context.Context) (journal.CertificateFacts, error) { return secretsOf.Read(ctx, of) },
		}))
	}
	for _, path := range secrets.Files() {
		ofFiles = append(ofFiles, observers.PollOne(observers.PolledOne[journal.CertificateFacts]{
			Machine: machine, Subject: journal.CertificateFile(path), Known: known, UID: noUID, NotFromAPI: true, Interval: filesInterval,
			Get: func(ctx context.Context) (journal.CertificateFacts, error) {
				if err := secretsOf.Clock(); err != nil {
					return journal.CertificateFacts{}, err
				}
				return secrets.ReadCA(ctx, dir, path, time.Now())
			},
		}))
	}
	return ofSecrets, ofFiles
}

// Watching returns sources without facts. They trigger the sources that [New] returned for Secrets when one of the
// Secrets changes. refs returns the Secrets of a source; from returns the kube.Source of a Secret.
func Watching(ofSecrets []observers.Source, refs func(of journal.Subject) []kube.Ref, from func(kube.Ref) kube.Source) (triggers []observers.Source) {
	for i, of := range secrets.Subjects() {
		for _, ref := range refs(of) {
			triggers = append(triggers, observers.Trigger(observers.Triggering{
				Name: "Secret " + ref.Namespace + "/" + ref.Name, From: from(ref), Example: &corev1.Secret{}, Changed: ofSecrets[i].Look,
			}))
		}
	}
	return triggers
}

const machine = "certificate"

func noUID(journal.CertificateFacts) string { return "" }
