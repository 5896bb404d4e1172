package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionskotsadm "github.com/replicatedhq/ekco/actions/kotsadm"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	fsmkotsadm "github.com/replicatedhq/ekco/fsm/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// kotsadmOf returns the capability for the replicas of kotsadm's database.
func kotsadmOf(c cluster) ring.Capability {
	capability, off := ring.Capability{Fsm: fsmkotsadm.Capability(), Policy: fsmkotsadm.Policy{Enabled: c.cfg.EnableHAKotsadm}, Words: fsmkotsadm.Words}, ""
	if !c.cfg.EnableHAKotsadm {
		off = "enable_ha_kotsadm is off"
	}
	return ring.WithObjects(capability, actionskotsadm.Object(c.objects), off, func(_ kube.API, changed func()) actions.Definition {
		return actionskotsadm.New(c.objects, c.cfg.KotsadmReadyTimeout, changed)
	}, journal.KotsadmDatabase)
}
