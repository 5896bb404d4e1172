package loadbalancer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Namespace is where HAProxy's pods are.
const Namespace = "kube-system"

// Running queries and reloads the HAProxies that run.
type Running interface {
	// Pods returns the pods of all nodes, by the names of their nodes.
	Pods(ctx context.Context) (map[string]Pod, error)
	// Pod returns the pod of a node; its error wraps kube.ErrNotFound if there is none.
	Pod(ctx context.Context, node string) (Pod, error)
	// Log returns the last part of the log of the pod's container since its start.
	Log(ctx context.Context, pod Pod) (string, error)
	// Reload makes HAProxy read its configuration again, without cutting a connection.
	Reload(ctx context.Context, pod Pod) error
	// Serves returns the DNS names in the certificate of the API server at an address. It returns an error unless that
	// server is ready.
	Serves(ctx context.Context, address string) (names []string, err error)
	// Refuses reports whether the API server at an address refuses anonymous requests; false if it does not answer.
	Refuses(ctx context.Context, address string) bool
	// Reach sends an anonymous request to an API server through the HAProxy on a host, and returns the HTTP status. It
	// returns an error unless that status shows that the server is ready.
	Reach(ctx context.Context, address string) (status int, err error)
}

// Identify reports whether an API server with these names in its certificate runs on a node: kubeadm includes the name
// of the node. known is false if the certificate has no node's name.
func Identify(names []string, node string, isNode func(name string) bool) (is, known bool) {
	return slices.Contains(names, node), slices.ContainsFunc(names, isNode)
}

// Pod is the pod of HAProxy on a node.
type Pod struct {
	Name string
	// Image and Version are from its manifest.
	Image, Version string
	// Runs is set if its container runs; Started is then the start time.
	Runs    bool
	Started time.Time
}

// Lacks returns why the pod does not run with the manifest of its host, or "".
func (p Pod) Lacks(on journal.LoadBalancerOnNode) string {
	switch {
	case p.Image != on.Image || p.Version != on.Version:
		return fmt.Sprintf("pod %s has image %s and file version %s, its manifest %s and %s", p.Name, p.Image, p.Version, on.Image, on.Version)
	case !p.Runs:
		return fmt.Sprintf("pod %s does not run", p.Name)
	}
	return ""
}

// aboutServer matches what HAProxy logs about a server: its first check after a start or a reload,
// and each change of its health.
var aboutServer = regexp.MustCompile(`\b[Ss]erver ([^\s/]+)/`)

// Has reports whether a log says that HAProxy runs with the configuration of this backend: the last
// line about a server names it.
func Has(log, backend string) bool {
	all := aboutServer.FindAllStringSubmatch(log, -1)
	return len(all) > 0 && all[len(all)-1][1] == backend
}
