package main

import (
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/actions"
	actioncsr "github.com/replicatedhq/ekco/actions/csr"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observercsr "github.com/replicatedhq/ekco/observers/csr"
)

// kubeletCSRsOf returns the capability for kubelets' requests for serving certificates.
func kubeletCSRsOf(c cluster) ring.Capability {
	return ring.Capability{
		Fsm:    fsmcsr.Capability(),
		Policy: fsmcsr.Policy{Approve: c.cfg.AutoApproveKubeletCSRs},
		Words:  fsmcsr.Words,
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actioncsr.New(c.csr, judgeCSR)}
		},
		Sources: func(s *fsm.State) []observers.Source { return []observers.Source{csrSource(c, s)} },
	}
}

func newCSRClient(config *rest.Config) (csr.API, error) {
	return csr.NewClient(config, kube.Options{UserAgent: "ekco/" + version.Get().Version})
}

// judgeCSR lets the action use the same rules for a certificate request as the machine.
func judgeCSR(asked journal.CSR, around journal.CSRAround) (key, reason string) {
	verdict := fsmcsr.Judge(asked, around)
	return verdict.Key, verdict.Reason
}

func csrSource(c cluster, s *fsm.State) observers.Source {
	options := observercsr.Options{Requests: c.csr.Requests(), Around: c.csr.Around, Neighbours: c.neighbours}
	for subject, facts := range fsmcsr.Open(s) {
		options.Known = append(options.Known, observercsr.Known{Subject: subject, Facts: facts})
	}
	if !c.cfg.AutoApproveKubeletCSRs {
		options.Off = "auto_approve_kubelet_csrs is off"
	}
	return observercsr.New(options)
}
