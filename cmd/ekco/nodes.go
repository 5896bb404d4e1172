package main

import (
	"log/slog"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/cmd/internal/traces"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
	"github.com/replicatedhq/ekco/observers/pods"
)

// nodesOf returns the capability for lost nodes and the pods on them.
func nodesOf(c cluster) ring.Capability {
	return ring.Capability{
		Fsm:    fsmnode.Capability(),
		Policy: nodePolicy(c.cfg),
		Words:  fsmnode.Words,
		Actions: func(api kube.API) []actions.Definition {
			return []actions.Definition{clear.New(api), purge.New(api, purgeOptions(c)...)}
		},
		Lookout: func(api kube.API, log *slog.Logger) ring.Lookout { return traces.New(api, log, purgeOptions(c)...) },
		Sources: func(s *fsm.State) []observers.Source { return nodeSources(c, fsmnode.Known(s)) },
	}
}

// nodePolicy returns the settings for decisions about nodes.
func nodePolicy(cfg config.Config) *fsmnode.Policy {
	return &fsmnode.Policy{
		ClearDeadNodes:    cfg.ClearDeadNodes,
		PurgeDeadNodes:    cfg.PurgeDeadNodes,
		ClearAfter:        cfg.ClearAfter,
		PurgeAfter:        cfg.NodeUnreachableToleration,
		PodGrace:          cfg.PodTerminationGrace,
		MinReadyPrimaries: cfg.MinReadyMasterNodes,
		MinReadyWorkers:   cfg.MinReadyWorkerNodes,
		MaxUnknown:        fsmnode.MaxUnknown(cfg.MaxUnknownNodes),
		MaintainRook:      cfg.MaintainRookStorageNodes,
	}
}

// nodeSources returns the sources for nodes and pods, in the order in which they report.
func nodeSources(c cluster, known []fsmnode.Node) []observers.Source {
	options := nodes.Options{
		Nodes: c.kube.Nodes(), Known: knownNodes(known),
		Settles: min(c.cfg.ClearAfter, c.cfg.NodeUnreachableToleration) / 2,
		Labels:  nodeLabels(c.cfg), Recorded: c.nodesChanged.Look,
	}
	if c.cfg.AutoApproveKubeletCSRs {
		options.Also = c.neighbours
	}
	return []observers.Source{
		nodes.New(options),
		pods.New(pods.Options{On: c.kube.PodsOn, Known: knownPods(known)}),
	}
}

func knownNodes(machines []fsmnode.Node) []kube.Node {
	var known []kube.Node
	for _, node := range machines {
		if node.Present() {
			known = append(known, kube.Node{Name: node.Name, UID: node.UID, Facts: node.Facts})
		}
	}
	return known
}

func knownPods(machines []fsmnode.Node) []pods.Known {
	var known []pods.Known
	for _, node := range machines {
		if !node.Present() {
			continue
		}
		on := pods.Known{Node: node.Name, NodeUID: node.UID}
		for _, pod := range node.Pods {
			on.Terminating = append(on.Terminating, journal.PodRef{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp,
			})
		}
		known = append(known, on)
	}
	return known
}
