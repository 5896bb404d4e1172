package main

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/actions"
	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmbalancer "github.com/replicatedhq/ekco/fsm/loadbalancer"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	balancersource "github.com/replicatedhq/ekco/observers/loadbalancer"
)

// hostTaskBalancer is the hidden command with which a host task writes HAProxy's files.
const hostTaskBalancer = "load-balancer"

// loadBalancersOf returns the capability that keeps the load balancers up to date.
func loadBalancersOf(c cluster) ring.Capability {
	balancers := &balancers{
		cluster: c, running: loadbalancer.NewClient(c.objects, c.kube, c.exec, c.authority),
		list: loadbalancer.NewList(c.objects, c.cfg.HostTaskNamespace), ofNodes: &observers.Nudge{}, ofList: &observers.Nudge{},
	}
	return ring.Capability{
		Fsm: fsmbalancer.Capability(), Policy: balancerPolicy(c.cfg), Words: fsmbalancer.Words,
		Actions: balancers.actions, Sources: balancers.sources,
	}
}

// balancers has the clients of the capability.
type balancers struct {
	cluster
	running *loadbalancer.Client
	list    *loadbalancer.List
	// ofNodes and ofList trigger the observers after an action.
	ofNodes, ofList *observers.Nudge
}

func (b *balancers) actions(kube.API) []actions.Definition {
	return actionsbalancer.New(actionsbalancer.Dependencies{
		Tasks: b.tasks, Running: b.running, List: b.list, Nodes: b.kube, HAProxy: b.cfg.InternalLoadBalancerHAProxyImage, Trial: b.cfg.InternalLoadBalancerTrial,
		Image: b.cfg.HostTaskImage, Command: []string{hostTaskCommand, hostTaskBalancer},
		SetKubeconfigs: []string{hostTaskCommand, hostTaskKubeconfigs}, Restarted: b.ofNodes.Look, Noted: b.ofList.Look,
	})
}

// loadBalancerChangesOf returns the capability that points kubelets to another server. Its actions are in the list of
// the load balancers' capability.
func loadBalancerChangesOf(cluster) ring.Capability {
	return ring.Capability{Fsm: fsmbalancer.ChangeCapability(), Words: fsmbalancer.ChangeWords}
}

// sources returns the sources. If load balancers are switched off, the sources observe nothing, and report the known
// load balancers as switched off.
func (b *balancers) sources(s *fsm.State) []observers.Source {
	known, lists := fsmbalancer.Known(s), fsmbalancer.KnownLists(s)
	if b.cfg.EnableInternalLoadBalancer {
		nodes := b.nodesChanged.Also(b.ofNodes.Over(balancersource.New(b.kube, b.running, known, fsmbalancer.Backends(s)))...)
		return append(nodes, b.ofList.Over(balancersource.NewList(b.list, lists, ""))...)
	}
	if len(known)+len(lists) == 0 {
		return nil
	}
	return []observers.Source{balancersource.Off(known, fsmbalancer.Off), balancersource.NewList(b.list, lists, fsmbalancer.Off)}
}

func balancerPolicy(cfg config.Config) fsmbalancer.Policy {
	return fsmbalancer.Policy{
		Enabled: cfg.EnableInternalLoadBalancer, Image: cfg.InternalLoadBalancerHAProxyImage,
		Version: loadbalancer.FileVersion, TCPVersion: loadbalancer.TCPFileVersion, Layout: loadbalancer.Layout(),
	}
}

// newHostTaskBalancerCommand returns the command that writes HAProxy's configuration on a host, and also its manifest
// if an image is given.
func newHostTaskBalancerCommand(a *app) *cobra.Command {
	var etc, image string
	var keep, tcp, askFirst bool
	var trial time.Duration
	var primaries []string
	cmd := &cobra.Command{
		Use: hostTaskBalancer, Hidden: true, Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			host := loadbalancer.Host{Etc: etc, TCPProbe: tcp}
			address := net.JoinHostPort("127.0.0.1", strconv.Itoa(loadbalancer.Port))
			check := balancerTrial{env: a.env, out: cmd.OutOrStdout(), host: host, address: address, within: trial, manifest: image != "" && !keep}
			if askFirst {
				host.AnyServes = func(primaries []string) error { return a.requireAnyServes(ctx, etc, primaries) }
			}
			if trial > 0 {
				host.Works = check.worksFunc(ctx)
				if err := host.Recover(); err != nil {
					return hosttask.Say(cmd.OutOrStdout(), nil, err)
				}
			}
			host.Confirm = check.confirm(ctx)
			var on journal.LoadBalancerOnNode
			var err error
			switch {
			case image == "":
				on, err = host.WriteConfig(ctx, primaries)
			case keep:
				on, err = host.Provide(ctx, primaries, image)
			default:
				on, err = host.Write(ctx, primaries, image)
			}
			return hosttask.Say(cmd.OutOrStdout(), on, err)
		},
	}
	cmd.Flags().StringVar(&etc, "host-etc-dir", actionsbalancer.HostEtc, "the host's /etc")
	cmd.Flags().StringVar(&image, "image", "", "image of HAProxy; without it, the manifest is not written")
	cmd.Flags().BoolVar(&keep, strings.TrimPrefix(actionsbalancer.KeepManifest, "--"), false, "keep an existing manifest, whatever its image")
	cmd.Flags().BoolVar(&askFirst, strings.TrimPrefix(actionsbalancer.AskFirst, "--"), false, "write no configuration if no API server answers the host at any primary")
	cmd.Flags().DurationVar(&trial, strings.TrimPrefix(actionsbalancer.Trial, "--"), 0, "restore the former files if HAProxy does not work with the new ones within this time")
	cmd.Flags().BoolVar(&tcp, strings.TrimPrefix(actionsbalancer.TCPProbe, "--"), false, "the liveness probe only opens a connection")
	cmd.Flags().StringSliceVar(&primaries, primaryHost, nil, "the primaries")
	return cmd
}

// requireAnyServes returns nil if the API server of one of these primaries accepts this host's kubelet credentials.
func (a *app) requireAnyServes(ctx context.Context, etc string, primaries []string) error {
	node, _ := a.env(hosttask.EnvNode)
	file, err := kubeconfig.In(etc, "kubelet.conf")
	if err != nil {
		return err
	}
	addresses := make([]string, len(primaries))
	for i, primary := range primaries {
		addresses[i] = net.JoinHostPort(strings.Trim(primary, "[]"), strconv.Itoa(loadbalancer.APIPort))
	}
	return file.AnyServes(ctx, addresses, node)
}
