package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/ring"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
	"github.com/replicatedhq/ekco/observers/pods"
)

// observe starts the observers on what the machines know.
func observe(client *kube.Client, now func() time.Time, cfg config.Config, lag func(resource string, lag time.Duration), log *slog.Logger) ring.StartObservers {
	return func(ctx context.Context, known []fsmnode.Node, recorder ring.Recorder) ring.Observers {
		return observers.Start(ctx, observers.Options{
			Sources: sources(client, cfg, known), Probe: client.Probe, Recorder: recorder, Log: log,
			PollInterval: cfg.ReconcileInterval, Lag: lag, Now: now,
		})
	}
}

// sources are what is observed, in the order in which it is told.
func sources(client *kube.Client, cfg config.Config, known []fsmnode.Node) []observers.Source {
	return []observers.Source{
		nodes.New(nodes.Options{
			Nodes: client.Nodes(), Known: knownNodes(known),
			Settles: min(cfg.ClearAfter, cfg.NodeUnreachableToleration) / 2,
		}),
		pods.New(pods.Options{On: client.PodsOn, Known: knownPods(known)}),
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
