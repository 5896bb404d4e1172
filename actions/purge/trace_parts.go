package purge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

func (p storagePart) trace(ctx context.Context, record journal.ActionRecord, facts Facts) Traced {
	var traced Traced
	err := p.capture(ctx, record, &facts)
	switch {
	case err != nil:
		traced.Doubts = []string{fmt.Sprintf("cannot read Rook: %v", err)}
	case facts.StorageLeft != "":
		traced.Doubts = []string{facts.StorageLeft}
		return traced
	case facts.Storage == nil:
		// Without Rook there is no place to search.
		return traced
	case facts.Storage.RookUnread == "":
		traced.Places = []string{"Rook"}
	}
	if err == nil && facts.Storage != nil && facts.Storage.TreeUnread == "" {
		traced.Places = append(traced.Places, "Ceph")
	}
	traced.Found = facts.Storage.removable()
	traced.Doubts = append(traced.Doubts, facts.Storage.doubts()...)
	if len(traced.Found)+len(traced.Doubts) == 0 {
		traced.Names = p.crushHosts(ctx)
	}
	return traced
}

// crushHosts returns the host names in the CRUSH map. It returns none on an error, because they are only a help.
func (p storagePart) crushHosts(ctx context.Context) (names []string) {
	tree, err := p.Ceph.Tree(ctx)
	if err != nil {
		return nil
	}
	for _, host := range tree.Hosts {
		names = append(names, host.Name)
	}
	return names
}

// removable lists what a purge would remove.
func (f *StorageFacts) removable() (found []string) {
	if f == nil {
		return nil
	}
	if f.Entry != nil && f.Entry.Name != "" {
		found = append(found, "an entry in the CephCluster")
	}
	if len(f.Deployments) > 0 {
		var names []string
		for _, d := range f.Deployments {
			names = append(names, d.Name)
		}
		found = append(found, "Deployment "+strings.Join(names, ", "))
	}
	switch {
	case f.CrushHost != "" && len(f.OSDs) > 0:
		found = append(found, "CRUSH host "+f.CrushHost+" with "+ceph.Names(f.ids()...))
	case f.CrushHost != "":
		found = append(found, "CRUSH host "+f.CrushHost+", which is empty")
	}
	return found
}

// doubts lists what EKCO does not know, and what a purge would not remove.
func (f *StorageFacts) doubts() (doubts []string) {
	if f == nil {
		return nil
	}
	if f.EntryKept != "" {
		doubts = append(doubts, "the CephCluster lists the name, and a purge does not remove it: "+f.EntryKept)
	}
	switch {
	case f.RookUnread != "":
		doubts = append(doubts, "cannot read Rook: "+f.RookUnread)
	case f.TreeUnread != "":
		doubts = append(doubts, "cannot read Ceph: "+f.TreeUnread)
	}
	return doubts
}

func (p primaryPart) trace(ctx context.Context, record journal.ActionRecord, facts Facts) Traced {
	var traced Traced
	switch err := p.captureWithEtcd(ctx, record, &facts); {
	case errors.Is(err, errNoPrimaries):
		traced.Doubts = []string{fmt.Sprintf("etcd was not asked: %v", err)}
	case err != nil:
		traced.Doubts = []string{fmt.Sprintf("cannot read the control plane: %v", err)}
	}
	if facts.Kubeadm != nil {
		traced.Places = append(traced.Places, "kubeadm's endpoints")
	}
	switch {
	case facts.Etcd != nil && facts.Etcd.Unasked:
		traced.Doubts = append(traced.Doubts, "cannot read etcd: "+facts.Etcd.Problem)
	case facts.Etcd != nil:
		traced.Places = append(traced.Places, "etcd")
	}
	traced.Found = facts.removableOfPrimary()
	if len(traced.Found)+len(traced.Doubts) == 0 {
		traced.Names = p.primaryNames(ctx)
	}
	return traced
}

// primaryNames returns the node names that etcd and kubeadm know. It returns none on an error, because they are only a
// help.
func (p primaryPart) primaryNames(ctx context.Context) []string {
	plane, err := p.readControlPlane(ctx, &Facts{})
	if err != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(plane.listed))
	api, err := p.plane.Etcd(kubeadm.EtcdClientURLs(plane.otherAddresses("", nil)))
	if err != nil {
		return names
	}
	members, err := api.Members(ctx)
	if err != nil {
		return names
	}
	for _, member := range members {
		if member.Name != "" && !slices.Contains(names, member.Name) {
			names = append(names, member.Name)
		}
	}
	return names
}

// removableOfPrimary lists what a purge would remove from the control plane. It ignores a remaining pod of an API
// server, because Kubernetes removes the pod.
func (f Facts) removableOfPrimary() (found []string) {
	if f.Etcd != nil && f.Etcd.Member != nil {
		found = append(found, "etcd member "+f.Etcd.Member.String())
	}
	if f.Etcd != nil && f.Etcd.Problem != "" && !f.Etcd.Unasked {
		found = append(found, "an etcd member that EKCO cannot identify: "+f.Etcd.Problem)
	}
	if f.Kubeadm != nil && f.Kubeadm.Edit && f.Kubeadm.Endpoint != nil {
		address := net.JoinHostPort(f.Kubeadm.Endpoint.AdvertiseAddress, strconv.Itoa(f.Kubeadm.Endpoint.BindPort))
		found = append(found, "endpoint "+address+" in kubeadm's ClusterStatus")
	}
	return found
}
