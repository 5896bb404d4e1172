package main

import (
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionscertificates "github.com/replicatedhq/ekco/actions/certificates"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	certificatesource "github.com/replicatedhq/ekco/observers/certificates"
)

// certificatesOf is what EKCO does about certificates.
func certificatesOf(c cluster) ring.Capability {
	store, nudge := secrets.New(c.objects, certificateOptions(c)), &observers.Nudge{}
	return ring.Capability{
		Fsm:    fsmcertificates.Capability(),
		Policy: fsmcertificates.Policy{Renew: c.cfg.RotateCerts},
		Words:  fsmcertificates.Words,
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actionscertificates.New(store, nudge.Look)}
		},
		Sources: func(s *fsm.State) []observers.Source {
			ofSecrets, ofFiles := certificatesource.New(store, c.cfg.CertificatesDir, fsmcertificates.Known(s))
			return append(nudge.Over(ofSecrets...), ofFiles...)
		},
	}
}

func certificateOptions(c cluster) secrets.Options {
	options := secrets.Options{
		Registry:  secrets.SecretRef(c.cfg.RegistryCertNamespace, c.cfg.RegistryCertSecret),
		KurlProxy: secrets.SecretRef(c.cfg.KurlProxyCertNamespace, c.cfg.KurlProxyCertSecret),
		Contour:   secrets.SecretRef(c.cfg.ContourNamespace, c.cfg.ContourCertSecret),
		Envoy:     secrets.SecretRef(c.cfg.ContourNamespace, c.cfg.EnvoyCertSecret),
		TTL:       c.cfg.RotateCertsTTL,
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
