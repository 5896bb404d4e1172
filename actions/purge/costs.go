package purge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Residents reads the pods and volumes of a node for a purge. [kube.Client] implements it.
type Residents interface {
	Residents(ctx context.Context, node string) ([]kube.Resident, error)
	LocalVolumes(ctx context.Context, hostname string) ([]kube.LocalVolume, error)
}

// WithResidents makes a purge report what happens to the node's pods.
func WithResidents(residents Residents) Option {
	return func(parts *parts) {
		node := parts.node.(nodePart)
		node.residents = residents
		parts.node = node
	}
}

// costReporter is a part of a purge that can report its costs.
type costReporter interface {
	// costs lists what the purge removes or changes, one item per line.
	costs(ctx context.Context, facts Facts) []string
}

// costs lists what a purge removes: pods, control plane and storage.
func (d definition) costs(ctx context.Context, record journal.ActionRecord) []string {
	facts, err := factsOf(record)
	if err != nil {
		return []string{err.Error()}
	}
	byPart := make([][]string, len(d.parts))
	var calls []func()
	for i, part := range d.parts {
		if costReporter, can := part.(costReporter); can {
			calls = append(calls, func() { byPart[i] = costReporter.costs(ctx, facts) })
		}
	}
	parallel.Run(calls...)
	if lines := slices.Concat(byPart...); len(lines) > 0 {
		return lines
	}
	return []string{"only the Node: it has no pods, no local volumes, and no part in the control plane or the storage"}
}

// costs lists what happens to the pods and local volumes of the node.
func (p nodePart) costs(ctx context.Context, facts Facts) []string {
	if p.residents == nil || !facts.Node.Present {
		return nil
	}
	pods, err := p.residents.Residents(ctx, facts.Node.Name)
	if err != nil {
		return []string{fmt.Sprintf(actions.CostUnknown+"which pods are on it: %v", kube.NamePermission(err, "list", "pods"))}
	}
	volumes, err := p.residents.LocalVolumes(ctx, facts.Node.hostname())
	if err != nil {
		return append(podLines(pods, nil), fmt.Sprintf(actions.CostUnknown+"which volumes are only on it: %v", kube.NamePermission(err, "list", "persistentvolumes")))
	}
	return append(podLines(pods, volumes), volumeLines(pods, volumes)...)
}

// maxNamed is the maximum number of names in a line.
const maxNamed = 10

// podLines returns which pods start elsewhere, which are not recreated, which terminate already, and how many belong
// to the node itself.
func podLines(pods []kube.Resident, volumes []kube.LocalVolume) (lines []string) {
	var move, alone, terminating []string
	own := 0
	for _, pod := range pods {
		name := pod.Namespace + "/" + pod.Name
		switch {
		case pod.Controller.Kind == "DaemonSet", pod.Controller.Kind == "Node":
			own++
		case pod.Terminating:
			terminating = append(terminating, name)
		case len(boundVolumes(pod, volumes)) > 0: // listed with its volume
		case pod.Controller.Kind == "":
			alone = append(alone, name)
		default:
			move = append(move, name)
		}
	}
	if len(move) > 0 {
		lines = append(lines, fmt.Sprintf("%s to other nodes: %s", words.CountOf(len(move), "pod moves", "pods move"), joinNames(move)))
	}
	if len(alone) > 0 {
		lines = append(lines, fmt.Sprintf(actions.CostOfLoss+"%s that no controller recreates: %s", words.Count(len(alone), "pod"), joinNames(alone)))
	}
	if len(terminating) > 0 {
		lines = append(lines, fmt.Sprintf("%s already: %s", words.CountOf(len(terminating), "pod terminates", "pods terminate"), joinNames(terminating)))
	}
	if own > 0 {
		lines = append(lines, words.CountOf(own, "pod ends", "pods end")+" with the node (static, or of a DaemonSet)")
	}
	return lines
}

// volumeLines lists the lost volumes, and the pods that cannot start without them.
func volumeLines(pods []kube.Resident, volumes []kube.LocalVolume) (lines []string) {
	for _, volume := range volumes {
		var stuck []string
		for _, pod := range pods {
			if slices.Contains(boundVolumes(pod, []kube.LocalVolume{volume}), volume.Name) {
				stuck = append(stuck, pod.Namespace+"/"+pod.Name)
			}
		}
		line := actions.CostOfLoss + "local volume " + volume.Name + " with its data"
		if volume.Claim != "" {
			line += " (claim " + volume.Claim + ")"
		}
		if len(stuck) > 0 {
			line += "; pods that cannot start without it: " + joinNames(stuck)
		}
		lines = append(lines, line)
	}
	return lines
}

// boundVolumes returns the names of the local volumes that keep the pod on the node.
func boundVolumes(pod kube.Resident, volumes []kube.LocalVolume) (names []string) {
	for _, volume := range volumes {
		if slices.ContainsFunc(pod.Claims, func(claim string) bool { return volume.Claim == pod.Namespace+"/"+claim }) {
			names = append(names, volume.Name)
		}
	}
	return names
}

// costs lists what remains of the control plane.
func (p primaryPart) costs(ctx context.Context, facts Facts) (lines []string) {
	if facts.Node.Role != journal.RolePrimary {
		return nil
	}
	nodes, err := p.api.ListNodes(ctx)
	if err != nil {
		lines = append(lines, fmt.Sprintf(actions.CostUnknown+"how many primaries are left: %v", kube.NamePermission(err, "list", "nodes")))
	} else {
		left, ready := 0, 0
		for _, node := range nodes {
			if node.Facts.Role == journal.RolePrimary && node.UID != facts.Node.UID {
				left++
				if node.Facts.Ready() {
					ready++
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%s left, %d of them ready", words.CountOf(left, "primary is", "primaries are"), ready))
	}
	if facts.Etcd == nil || facts.Etcd.Member == nil {
		return lines
	}
	return append(lines, p.toleranceLine(ctx, facts))
}

// toleranceLine returns a line with the number of members that etcd can lose after the purge.
func (p primaryPart) toleranceLine(ctx context.Context, facts Facts) string {
	api, err := p.plane.Etcd(facts.Etcd.Endpoints)
	if err != nil {
		return fmt.Sprintf(actions.CostUnknown+"how many members of etcd are left: %v", err)
	}
	members, err := api.Members(ctx)
	if err != nil {
		return fmt.Sprintf(actions.CostUnknown+"how many members of etcd are left: %v", err)
	}
	voters := 0
	for _, member := range members {
		if !member.Learner && member.ID != facts.Etcd.Member.ID {
			voters++
		}
	}
	return fmt.Sprintf("%s left, of which %d can fail", words.CountOf(voters, "member of etcd is", "members of etcd are"), max(0, voters-1)/2)
}

// costs lists the OSDs that the purge removes, and the pools that then have too few copies.
func (p storagePart) costs(ctx context.Context, facts Facts) []string {
	if facts.Storage == nil || len(facts.Storage.OSDs) == 0 {
		return nil
	}
	ids := facts.Storage.ids()
	gone := ceph.Names(ids...) + " with their copies of the data"
	tree, err := p.Ceph.Tree(ctx)
	if err != nil {
		return []string{gone, fmt.Sprintf(actions.CostUnknown+"which pools would lack copies: %v", err)}
	}
	weight := 0.0
	for _, id := range ids {
		if osd, there := tree.OSD(id); there {
			weight += osd.Weight
		}
	}
	if weight > 0 {
		gone += fmt.Sprintf(" (%.1f TiB by their weight in the CRUSH map)", weight)
	}
	pools, err := p.Ceph.Pools(ctx)
	if err != nil {
		return []string{gone, fmt.Sprintf(actions.CostUnknown+"which pools would lack copies: %v", err)}
	}
	return append([]string{gone}, ceph.LackingCopies(tree, pools, ids)...)
}

// joinNames joins at most maxNamed names.
func joinNames(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
