package certificates

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Primaries reads the facts about the certificates of control planes.
type Primaries interface {
	Facts(ctx context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error)
}

// OfPrimaries returns the source of facts about control planes' certificates: the list of primaries, and the
// certificates that programs found there. clock returns an error if the clock may be too wrong to decide about
// renewals. If off is not "", the source records the known facts as gone, with off as the reason.
func OfPrimaries(primaries Primaries, clock func() error, off string, known map[string]journal.CertificateFacts) observers.Source {
	byNode := ofNodes(known, journal.ControlPlaneOn)
	ask := func(ctx context.Context) (map[string]journal.CertificateFacts, error) {
		if err := clock(); err != nil {
			return nil, err
		}
		return primaries.Facts(ctx, byNode)
	}
	if off != "" {
		ask = func(context.Context) (map[string]journal.CertificateFacts, error) { return nil, nil }
	}
	return observers.Poll(observers.Polled[journal.CertificateFacts]{
		Name: "certificates of control planes", OfAPI: off == "", Ask: ask,
		Noun: onNodes(journal.ControlPlaneCertificates, byNode, func(reason string) string {
			if off != "" {
				return off
			}
			return "its node is no longer a primary: " + reason
		}),
	})
}
