package certificates

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Kubelets reads the certificates that kubelets serve.
type Kubelets interface {
	Facts(ctx context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error)
}

const (
	// kubeletsInterval is how often EKCO does a TLS handshake with each kubelet. Kubelets' certificates change a few
	// times a year. kubeletsTimeout is enough for a thousand kubelets that do not answer.
	kubeletsInterval = 10 * time.Minute
	kubeletsTimeout  = 2 * time.Minute
)

// OfKubelets returns the source of facts about kubelets' serving certificates. clock returns an error if the clock may
// be too wrong to decide when they expire.
func OfKubelets(kubelets Kubelets, clock func() error, known map[string]journal.CertificateFacts) observers.Source {
	// seen has the known facts, which stay for kubelets that do not answer.
	seen := ofNodes(known, journal.KubeletOn)
	return observers.Poll(observers.Polled[journal.CertificateFacts]{
		Name: "certificates of kubelets", Interval: kubeletsInterval, Timeout: kubeletsTimeout,
		Ask: func(ctx context.Context) (map[string]journal.CertificateFacts, error) {
			if err := clock(); err != nil {
				return nil, err
			}
			now, err := kubelets.Facts(ctx, seen)
			if errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
				return seen, nil // no error: the watches report the outage, and its end must not wait for these handshakes
			}
			if err == nil {
				seen = now
			}
			return now, err
		},
		Noun: onNodes(journal.KubeletCertificate, ofNodes(known, journal.KubeletOn), func(reason string) string { return "its node is gone: " + reason }),
	})
}
