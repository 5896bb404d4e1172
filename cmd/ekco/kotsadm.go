package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionskotsadm "github.com/replicatedhq/ekco/actions/kotsadm"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmkotsadm "github.com/replicatedhq/ekco/fsm/kotsadm"
	"github.com/replicatedhq/ekco/internal/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	kotsadmsource "github.com/replicatedhq/ekco/observers/kotsadm"
)

// kotsadmOf returns the capability for the replicas of kotsadm's database.
func kotsadmOf(c cluster) ring.Capability {
	api, nudge := kotsadm.NewClient(c.objects), &observers.Nudge{}
	return ring.Capability{
		Fsm:    fsmkotsadm.Capability(),
		Policy: fsmkotsadm.Policy{Enabled: c.cfg.EnableHAKotsadm},
		Words:  fsmkotsadm.Words,
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actionskotsadm.New(api, c.cfg.KotsadmReadyTimeout, nudge.Look)}
		},
		Sources: func(s *fsm.State) []observers.Source {
			off := ""
			if !c.cfg.EnableHAKotsadm {
				off = "enable_ha_kotsadm is off"
			}
			return nudge.Over(kotsadmsource.New(api, fsmkotsadm.Known(s), off))
		},
	}
}
