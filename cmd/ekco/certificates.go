package main

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionscertificates "github.com/replicatedhq/ekco/actions/certificates"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/kubelets"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	certificatesource "github.com/replicatedhq/ekco/observers/certificates"
)

// certificatesOf returns the capability for certificates.
func certificatesOf(c cluster) ring.Capability {
	store, nudge := secrets.New(c.objects, certificateOptions(c)), &observers.Nudge{}
	onHosts, seen := primariesOf(c), &observers.Nudge{}
	policy := fsmcertificates.Policy{Renew: c.cfg.RotateCerts, Every: c.cfg.RotateCertsCheckInterval, TTL: c.cfg.RotateCertsTTL}
	return ring.Capability{
		Fsm:    fsmcertificates.Capability(),
		Policy: policy,
		Words:  fsmcertificates.Words,
		Actions: func(kube.API) []actions.Definition {
			due := func(facts journal.CertificateFacts, input journal.CertificateInput) (why string, due bool) {
				return policy.Due(facts, input, time.Now())
			}
			return append(actionscertificates.OfPrimaries(primariesActions(c, onHosts, seen.Look, store.Clock)), actionscertificates.New(store, due, nudge.Look))
		},
		Sources: func(s *fsm.State) []observers.Source {
			known := fsmcertificates.Known(s)
			ofSecrets, ofFiles := certificatesource.New(store, c.cfg.CertificatesDir, known)
			ofPrimaries := certificatesource.OfPrimaries(onHosts, store.Clock, certificateOptions(c).Off, known)
			ofKubelets := certificatesource.OfKubelets(kubelets.Store{Nodes: c.kube}, store.Clock, known)
			triggers := certificatesource.Watching(ofSecrets, store.Refs, func(ref kube.Ref) kube.Source { return c.kube.SecretNamed(ref.Namespace, ref.Name) })
			return append(slices.Concat(nudge.Over(ofSecrets...), triggers, ofFiles, c.nodesChanged.Also(seen.Over(ofPrimaries)...)), ofKubelets)
		},
	}
}

func certificateOptions(c cluster) secrets.Options {
	options := secrets.Options{
		Registry:      secrets.SecretRef(c.cfg.RegistryCertNamespace, c.cfg.RegistryCertSecret),
		KurlProxy:     secrets.SecretRef(c.cfg.KurlProxyCertNamespace, c.cfg.KurlProxyCertSecret),
		Contour:       secrets.SecretRef(c.cfg.ContourNamespace, c.cfg.ContourCertSecret),
		Envoy:         secrets.SecretRef(c.cfg.ContourNamespace, c.cfg.EnvoyCertSecret),
		KubeletClient: secrets.SecretRef(c.cfg.KotsadmKubeletCertNamespace, c.cfg.KotsadmKubeletCertSecret),
		Client:        func() (secrets.Client, error) { return secrets.ReadClient(c.cfg.CertificatesDir) },
		Authority: func(at time.Time) (certificates.Authority, error) {
			return certificates.ReadAuthority(c.cfg.CertificatesDir, "ca", at)
		},
	}
	if c.kube != nil {
		options.ServerTime = c.kube.ServerTime
	}
	if !c.cfg.RotateCerts {
		options.Off = "rotate_certs is off"
	}
	return options
}
