package loadbalancer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Namespace is the namespace of HAProxy's pods.
const Namespace = "kube-system"

// Running queries and reloads the running HAProxies.
type Running interface {
	// Pods returns the pods of all nodes, by the names of their nodes.
	Pods(ctx context.Context) (map[string]Pod, error)
	// Pod returns the pod of a node; its error wraps kube.ErrNotFound if there is none.
	Pod(ctx context.Context, node string) (Pod, error)
	// Log returns the last part of the log of the pod's container since its start.
	Log(ctx context.Context, pod Pod) (string, error)
	// Reload makes HAProxy read its configuration again, without cutting a connection.
	Reload(ctx context.Context, pod Pod) error
	// Serves returns the DNS names in the certificate of the API server at an address. It returns an error unless the
	// server is ready.
	Serves(ctx context.Context, address string) (names []string, err error)
	// Refuses reports whether the API server at an address refuses anonymous requests. It returns false if the server does
	// not answer.
	Refuses(ctx context.Context, address string) bool
	// Reach sends an anonymous request to an API server through the HAProxy on a host, and returns the HTTP status. It
	// returns an error unless that status shows that the server is ready.
	Reach(ctx context.Context, address string) (status int, err error)
}

// Identify reports whether an API server runs on a node. names are the names in the server's certificate: kubeadm
// includes the name of the node. known is false if names has no name of a node.
func Identify(names []string, node string, isNode func(name string) bool) (is, known bool) {
	return slices.Contains(names, node), slices.ContainsFunc(names, isNode)
}

// Pod is the pod of HAProxy on a node.
type Pod struct {
	Name string
	// Image and Version come from the pod's manifest.
	Image, Version string
	// Runs is set if the pod's container runs. Then Started is the start time.
	Runs    bool
	Started time.Time
}

// Lacks returns why the pod does not run with the manifest of its host, or "".
func (p Pod) Lacks(on journal.LoadBalancerOnNode) string {
	switch {
	case p.Image != on.Image || p.Version != on.Version:
		return fmt.Sprintf("pod %s has image %s and file version %s, but its manifest has image %s and file version %s", p.Name, p.Image, p.Version, on.Image, on.Version)
	case !p.Runs:
		return fmt.Sprintf("pod %s does not run", p.Name)
	}
	return ""
}

// aboutServer matches HAProxy's log lines about the health of a server: the first check after a start or a reload, and
// each change.
var aboutServer = regexp.MustCompile(`\b[Ss]erver ([^\s/]+)/`)

// RunsWith reports whether HAProxy runs with the configuration of the backend: then the last log line about a server
// names the backend.
func RunsWith(log, backend string) bool {
	all := aboutServer.FindAllStringSubmatch(log, -1)
	return len(all) > 0 && all[len(all)-1][1] == backend
}
