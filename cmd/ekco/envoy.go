package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionsenvoy "github.com/replicatedhq/ekco/actions/envoy"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmenvoy "github.com/replicatedhq/ekco/fsm/envoy"
	"github.com/replicatedhq/ekco/internal/envoy"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observersenvoy "github.com/replicatedhq/ekco/observers/envoy"
)

// envoyOf returns the capability that restarts Envoy pods that stay unready.
func envoyOf(c cluster) ring.Capability {
	return ring.Capability{
		Fsm:     fsmenvoy.Capability(),
		Policy:  fsmenvoy.Policy{Restart: c.cfg.RestartFailedEnvoyPods, After: c.cfg.EnvoyPodsNotReadyDuration},
		Words:   fsmenvoy.Words,
		Actions: func(api kube.API) []actions.Definition { return []actions.Definition{actionsenvoy.New(api)} },
		Sources: func(s *fsm.State) []observers.Source { return envoySources(c, fsmenvoy.Known(s)) },
	}
}

// envoySources returns the sources. They watch pods only if EKCO may restart them.
func envoySources(c cluster, known map[string]journal.EnvoyPod) []observers.Source {
	switch {
	case c.cfg.RestartFailedEnvoyPods && c.cfg.ContourNamespace != "": // "" would mean all namespaces
		pods := c.kube.PodsLabelled(c.cfg.ContourNamespace, envoy.Label, envoy.App)
		return []observers.Source{observersenvoy.New(observersenvoy.Options{Pods: pods, Known: known})}
	case len(known) > 0:
		return []observers.Source{observersenvoy.Off(known, "restart_failed_envoy_pods is off")}
	}
	return nil
}
