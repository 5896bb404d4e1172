package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Rook is what a purge asks of Rook's objects.
type Rook interface {
	// StorageNodes returns spec.storage of the CephCluster. It returns an error
	// that wraps [kube.ErrNotFound] when there is no CephCluster or no Rook.
	StorageNodes(ctx context.Context) (StorageNodes, error)
	// RemoveStorageNode takes the entry out of spec.storage.nodes, only if it is
	// there with that very value; else it returns [kube.ErrConflict].
	RemoveStorageNode(ctx context.Context, entry StorageNode) error
	// OSDDeployments lists the Deployments of all OSDs.
	OSDDeployments(ctx context.Context) ([]OSDDeployment, error)
	// RemoveOSDDeployment scales the Deployment of that name and UID to 0 and
	// deletes it. Errors as [kube.API] DeleteNode.
	RemoveOSDDeployment(ctx context.Context, name, uid string) error
}

// StorageNodes is the part of a CephCluster that says on which nodes to store.
type StorageNodes struct {
	UseAllNodes bool
	Nodes       []StorageNode
}

// StorageNode is an entry of spec.storage.nodes, with all that it says.
type StorageNode struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// OSDDeployment is the Deployment of one OSD.
type OSDDeployment struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// OSD is the OSD's id, Hostname that of the node it is bound to.
	OSD      int    `json:"osd"`
	Hostname string `json:"hostname"`
}

// Storage is where a purge finds Ceph.
type Storage struct {
	Ceph ceph.API
	Rook Rook
	// UserManaged is set when the list of storage nodes is the installer's: EKCO
	// then leaves it alone.
	UserManaged bool
	// Wait is how long a purge waits between marking OSDs out and purging them.
	Wait time.Duration
}

// PurgeStorage makes a purge remove the node's OSDs, its CRUSH host and its
// entry in the CephCluster.
func PurgeStorage(storage Storage) PurgeOption {
	return func(parts *purgeParts) {
		api := parts.node.(nodePart).api
		parts.storage = storagePart{Storage: storage, api: api}
	}
}

// StorageFacts is what Rook and Ceph knew of the node.
type StorageFacts struct {
	// OSDs are the node's, sorted by id.
	OSDs []OSDFacts `json:"osds,omitempty"`
	// Deployments are those of the OSDs.
	Deployments []OSDDeployment `json:"deployments,omitempty"`
	// CrushHost is the node's host in the CRUSH map, empty when it has none.
	CrushHost string `json:"crush_host,omitempty"`
	// TreeUnread says why the CRUSH tree could not be read. OSDs then lack their
	// UUIDs, and there may be more of them; both are found when Ceph answers.
	TreeUnread string `json:"tree_unread,omitempty"`
	// Entry is the node's in the CephCluster, nil when none is to be removed;
	// EntryKept then says why.
	Entry     *StorageNode `json:"entry,omitempty"`
	EntryKept string       `json:"entry_kept,omitempty"`
}

// OSDFacts is one OSD of the node.
type OSDFacts struct {
	ceph.Ref
	// Gone is set when only the CRUSH map still had the OSD.
	Gone bool `json:"gone,omitempty"`
}

// needsCeph reports whether anything is to be asked of Ceph.
func (f *StorageFacts) needsCeph() bool {
	return f != nil && (len(f.OSDs) > 0 || f.CrushHost != "" || f.TreeUnread != "")
}

// ids returns the OSDs' ids.
func (f *StorageFacts) ids() []int {
	ids := make([]int, len(f.OSDs))
	for i, osd := range f.OSDs {
		ids[i] = osd.ID
	}
	return ids
}

// storagePart is the node's part of Ceph.
type storagePart struct {
	Storage
	api kube.API
}

func (p storagePart) capture(ctx context.Context, record journal.ActionRecord, facts *PurgeFacts) error {
	replacement, err := facts.Node.replacement(ctx, p.api)
	if err != nil || replacement != "" {
		// Whatever is under the name now may belong to the new node.
		return err
	}
	nodes, err := p.Rook.StorageNodes(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read the storage nodes of the CephCluster: %w", missing(err, "get", "cephclusters"))
	}
	facts.Storage = &StorageFacts{}
	p.captureEntry(nodes, facts)
	deployments, err := p.Rook.OSDDeployments(ctx)
	if err != nil {
		return fmt.Errorf("find the OSDs of node %s: %w", facts.Node.Name, missing(err, "list", "deployments in rook-ceph"))
	}
	return p.captureOSDs(ctx, record, deployments, facts)
}

func (p storagePart) captureEntry(nodes StorageNodes, facts *PurgeFacts) {
	entry, listed := entryOf(nodes, facts.Node)
	switch {
	case !listed:
	case p.UserManaged:
		facts.Storage.EntryKept = "the list is the installer's (rook_storage_nodes)"
	case nodes.UseAllNodes:
		facts.Storage.EntryKept = "useAllNodes is set"
	default:
		facts.Storage.Entry = &entry
	}
}

func entryOf(nodes StorageNodes, node NodeIdentity) (StorageNode, bool) {
	at := slices.IndexFunc(nodes.Nodes, func(n StorageNode) bool { return n.Name == node.Name || n.Name == node.hostname() })
	if at < 0 {
		return StorageNode{}, false
	}
	return nodes.Nodes[at], true
}

// captureOSDs finds the node's OSDs by their Deployments and in the CRUSH tree.
// A manual purge goes on without the tree, since people purge a node when
// storage is down as well; an automatic one waits.
func (p storagePart) captureOSDs(ctx context.Context, record journal.ActionRecord, deployments []OSDDeployment, facts *PurgeFacts) error {
	storage := facts.Storage
	for _, d := range deployments {
		if d.Hostname == facts.Node.hostname() || d.Hostname == facts.Node.Name {
			storage.Deployments = append(storage.Deployments, d)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cephLook)
	defer cancel()
	tree, err := p.Ceph.Tree(ctx)
	switch {
	case err == nil:
		storage.OSDs, storage.CrushHost = ownOSDs(tree, facts.Node, storage.Deployments, deployments)
	case record.Request.Manual:
		storage.TreeUnread = err.Error()
		storage.OSDs, _ = ownOSDs(ceph.Tree{}, facts.Node, storage.Deployments, deployments)
	default:
		return fmt.Errorf("find the OSDs of node %s: %w", facts.Node.Name, err)
	}
	return nil
}

// cephLook bounds a question to Ceph that only a look needs.
const cephLook = 20 * time.Second

// ownOSDs returns the OSDs that have one of the node's Deployments, or are under
// the node's CRUSH host and have no Deployment elsewhere, and that host.
func ownOSDs(tree ceph.Tree, node NodeIdentity, own, all []OSDDeployment) (osds []OSDFacts, crushHost string) {
	var ids []int
	for _, d := range own {
		ids = append(ids, d.OSD)
	}
	if host, ok := tree.HostOfNode(node.hostname()); ok {
		crushHost = host.Name
		for _, id := range host.OSDs {
			if !slices.ContainsFunc(all, func(d OSDDeployment) bool { return d.OSD == id }) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		facts := OSDFacts{Ref: ceph.Ref{ID: id}}
		if osd, ok := tree.OSD(id); ok {
			facts.Ref, facts.Gone = osd.Ref, !osd.Exists
		}
		osds = append(osds, facts)
	}
	return osds, crushHost
}
