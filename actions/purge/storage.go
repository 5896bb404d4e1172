package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// Rook reads and changes Rook's objects for a purge. [rook.API] implements it.
type Rook interface {
	Detect(ctx context.Context) (rook.Installation, error)
	OSDDeployments(ctx context.Context) ([]rook.OSDDeployment, error)
	ScaleDown(ctx context.Context, name, uid string) error
	DeleteDeployment(ctx context.Context, name, uid string) error
	StorageNode(ctx context.Context, names ...string) (rook.StorageNode, error)
	RemoveStorageNode(ctx context.Context, node rook.StorageNode) (removed json.RawMessage, err error)
	AddStorageNode(ctx context.Context, node rook.StorageNode) error
	OSDPods(ctx context.Context, node string) ([]rook.OSDPod, error)
}

// Storage gives access to Rook and Ceph.
type Storage struct {
	Ceph ceph.API
	Rook Rook
	// UserManaged is true if the installer manages the list of storage nodes. EKCO then does not change the list.
	UserManaged bool
	// NodeListOnlyOnRequest is true if maintain_rook_storage_nodes is false. A purge then changes the list of storage
	// nodes only on request.
	NodeListOnlyOnRequest bool
	// Wait is how long a purge waits between marking OSDs out and purging them.
	Wait time.Duration
}

// WithStorage makes a purge remove the node's OSDs, its CRUSH host and its
// entry in the CephCluster.
func WithStorage(storage Storage) Option {
	return func(parts *parts) {
		api := parts.node.(nodePart).api
		parts.storage = storagePart{Storage: storage, api: api}
	}
}

// StorageFacts has the data of Rook and Ceph about the node.
type StorageFacts struct {
	// OSDs lists the OSDs of the node, sorted by id.
	OSDs []OSDFacts `json:"osds,omitempty"`
	// Deployments are the OSDs' Deployments.
	Deployments []rook.OSDDeployment `json:"deployments,omitempty"`
	// CrushHost is the node's host in the CRUSH map, or "".
	CrushHost string `json:"crush_host,omitempty"`
	// TreeUnread is the error if the CRUSH tree could not be read. The UUIDs of OSDs then come from their Deployments
	// or are unknown, and some OSDs may be missing. EKCO finds both when Ceph answers.
	TreeUnread string `json:"tree_unread,omitempty"`
	// RookUnread is the error if EKCO could not read Rook's objects. EKCO finds Deployments and Entry when it can.
	RookUnread string `json:"rook_unread,omitempty"`
	// Entry is the node's entry in the CephCluster, or nil if EKCO must not remove one; EntryKept then has the reason.
	// If the node is not listed yet, another EKCO may be adding it: Entry then has no name, and the step looks for the
	// entry again.
	Entry     *rook.StorageNode `json:"entry,omitempty"`
	EntryKept string            `json:"entry_kept,omitempty"`
	// absent is true if a later read found no Rook.
	absent bool
}

// OSDFacts is one OSD of the node.
type OSDFacts struct {
	ceph.Ref
	// Gone is true if only the CRUSH map still had the OSD.
	Gone bool `json:"gone,omitempty"`
	// Out is true if the OSD was already out. Reweight is its weight, unless it was out or had the full weight.
	Out      bool    `json:"out,omitempty"`
	Reweight float64 `json:"reweight,omitempty"`
}

// weight returns the OSD's former reweight.
func (f OSDFacts) weight() float64 {
	switch {
	case f.Out || f.Gone:
		return 0
	case f.Reweight > 0:
		return f.Reweight
	}
	return 1
}

// needsCeph reports whether the purge has to use Ceph.
func (f *StorageFacts) needsCeph() bool {
	return f != nil && (len(f.OSDs) > 0 || f.CrushHost != "" || f.TreeUnread != "")
}

func (f *StorageFacts) ids() []int {
	ids := make([]int, len(f.OSDs))
	for i, osd := range f.OSDs {
		ids[i] = osd.ID
	}
	return ids
}

func (f *StorageFacts) refs() []ceph.Ref {
	refs := make([]ceph.Ref, len(f.OSDs))
	for i, osd := range f.OSDs {
		refs[i] = osd.Ref
	}
	return refs
}

// storagePart is the part of a purge for Rook and Ceph.
type storagePart struct {
	Storage
	api kube.API
}

func (p storagePart) capture(ctx context.Context, record journal.ActionRecord, facts *Facts) error {
	if !removesStorage(record) {
		facts.StorageLeft = p.leftWarning(ctx, record)
		return nil
	}
	var err error
	facts.Storage, err = p.readRook(ctx, record, facts.Node)
	switch {
	case record.Request.Manual && errors.Is(err, kube.ErrForbidden):
		// There may be OSDs. The purge finds them when EKCO can read Rook's objects.
		facts.Storage = &StorageFacts{RookUnread: err.Error(), TreeUnread: err.Error()}
		return nil
	case err != nil || facts.Storage == nil:
		return err
	}
	newOwners, err := p.newOwners(ctx, facts.Node)
	if err != nil || newOwners.hostname != "" {
		// Everything under the hostname may now belong to that node.
		facts.Storage, facts.Node.HostnameOf = nil, newOwners.hostname
		return err
	}
	return p.captureOSDs(ctx, record, facts, newOwners)
}

// readRook captures the data in Rook's objects about the node. It returns nil if there is no Rook.
func (p storagePart) readRook(ctx context.Context, record journal.ActionRecord, node NodeIdentity) (*StorageFacts, error) {
	installation, err := p.Rook.Detect(ctx)
	if err != nil || !installation.Present {
		return nil, err
	}
	var facts StorageFacts
	entry, err := p.Rook.StorageNode(ctx, node.names()...)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for node %s in the CephCluster: %w", node.Name, err)
	case entry.Name == "" && (p.UserManaged || p.NodeListOnlyOnRequest || entry.UseAllNodes):
	case p.UserManaged:
		facts.EntryKept = "the list is the installer's (rook_storage_nodes)"
	case entry.UseAllNodes:
		facts.EntryKept = "useAllNodes is set"
	case !p.changesNodeList(record):
		facts.EntryKept = "maintain_rook_storage_nodes is false"
	default:
		facts.Entry = &entry
	}
	facts.Deployments, err = p.deployments(ctx, node)
	return &facts, err
}

// deployments returns the Deployments of OSDs that are bound to the node.
func (p storagePart) deployments(ctx context.Context, node NodeIdentity) ([]rook.OSDDeployment, error) {
	all, err := p.allDeployments(ctx, node)
	return slices.DeleteFunc(all, func(d rook.OSDDeployment) bool { return !node.binds(d) }), err
}

func (p storagePart) allDeployments(ctx context.Context, node NodeIdentity) ([]rook.OSDDeployment, error) {
	all, err := p.Rook.OSDDeployments(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the OSDs of node %s: %w", node.Name, err)
	}
	return all, nil
}

func (n NodeIdentity) binds(d rook.OSDDeployment) bool {
	return d.Hostname != "" && slices.Contains(n.names(), d.Hostname)
}

// captureOSDs finds the node's OSDs by their Deployments and in the CRUSH tree. If the tree cannot be read, a manual
// purge continues, because persons purge nodes also while storage is down. An automatic purge waits.
func (p storagePart) captureOSDs(ctx context.Context, record journal.ActionRecord, facts *Facts, newOwners newOwners) error {
	storage := facts.Storage
	asking, cancel := context.WithTimeout(ctx, cephReadTimeout)
	defer cancel()
	tree, err := p.Ceph.Tree(asking)
	switch {
	case err == nil:
	case record.Request.Manual:
		storage.TreeUnread = err.Error()
	default:
		return fmt.Errorf("find the OSDs of node %s: %w", facts.Node.Name, err)
	}
	osds := deployedOSDs(storage.Deployments)
	host, ok := tree.HostOfNode(facts.Node.hostname())
	if ok {
		storage.CrushHost = host.Name
	}
	if ok && newOwners.crush == "" {
		orphans, err := p.orphanedOSDs(ctx, tree, host, facts.Node, osds)
		if err != nil {
			return err
		}
		osds = append(osds, stoppedOSDs(tree, orphans)...)
	}
	storage.OSDs = osdFacts(tree, osds)
	return nil
}

// deployedOSDs returns the OSDs that have a Deployment.
func deployedOSDs(deployments []rook.OSDDeployment) (osds []ceph.Ref) {
	for _, d := range deployments {
		if d.OSD != rook.UnknownOSD {
			osds = append(osds, ceph.Ref{ID: d.OSD, UUID: d.UUID})
		}
	}
	return osds
}

// cephReadTimeout limits one read of Ceph. It is longer than the timeout of the command, so that EKCO gets the error of
// ceph itself.
const cephReadTimeout = ceph.DefaultTimeout + ceph.DefaultGrace + 4*time.Second

// orphanedOSDs returns the OSDs under the host that are not in known and have no Deployment on another machine. The
// CRUSH map alone does not show the machine: Rook replaces dots by dashes there, and a moved disk can still be under
// its old host.
func (p storagePart) orphanedOSDs(ctx context.Context, tree ceph.Tree, host ceph.Host, node NodeIdentity, known []ceph.Ref) ([]ceph.Ref, error) {
	var orphans []ceph.Ref
	for _, id := range host.OSDs {
		ref := ceph.Ref{ID: id}
		if osd, ok := tree.OSD(id); ok {
			ref = osd.Ref
		}
		if !hasOSD(known, ref) {
			orphans = append(orphans, ref)
		}
	}
	if len(orphans) == 0 {
		return nil, nil
	}
	deployments, err := p.Rook.OSDDeployments(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out which machines the OSDs of CRUSH host %s belong to: %w", host.Name, err)
	}
	elsewhere := deployedOSDs(slices.DeleteFunc(deployments, node.binds))
	return slices.DeleteFunc(orphans, func(osd ceph.Ref) bool { return hasOSD(elsewhere, osd) }), nil
}

// stoppedOSDs returns the OSDs that do not run. An OSD that runs without a Deployment of the node is on another
// machine.
func stoppedOSDs(tree ceph.Tree, osds []ceph.Ref) []ceph.Ref {
	return slices.DeleteFunc(slices.Clone(osds), func(ref ceph.Ref) bool {
		now, _ := tree.OSD(ref.ID)
		return now.Up
	})
}

// hasOSD reports whether the list has the OSD. It compares UUIDs if both are known.
func hasOSD(osds []ceph.Ref, osd ceph.Ref) bool {
	return slices.ContainsFunc(osds, func(o ceph.Ref) bool { return o.ID == osd.ID && !o.IsOther(osd) })
}

// osdFacts returns the facts of the OSDs from the tree, sorted by id. It skips an OSD if another OSD now has its id,
// because the former OSD is gone.
func osdFacts(tree ceph.Tree, osds []ceph.Ref) []OSDFacts {
	var all []OSDFacts
	for _, ref := range osds {
		facts := OSDFacts{Ref: ref}
		if now, ok := tree.OSD(ref.ID); ok {
			if now.IsOther(ref) {
				continue
			}
			facts.Gone = !now.Exists
			facts.Out = now.Exists && !now.In()
			if now.In() && now.Reweight < 1 {
				facts.Reweight = now.Reweight
			}
			if now.UUID != "" {
				facts.UUID = now.UUID
			}
		}
		all = append(all, facts)
	}
	slices.SortFunc(all, func(a, b OSDFacts) int { return a.ID - b.ID })
	return slices.CompactFunc(all, func(a, b OSDFacts) bool { return a.ID == b.ID })
}
