package purge_test

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
)

// mortalCeph is Ceph as one incarnation reaches it.
type mortalCeph struct {
	ceph.API
	fuse *actionstest.Fuse
}

func (m mortalCeph) Health(ctx context.Context) (ceph.Health, error) {
	if err := m.fuse.Alive(); err != nil {
		return ceph.Health{}, err
	}
	return m.API.Health(ctx)
}

func (m mortalCeph) Tree(ctx context.Context) (ceph.Tree, error) {
	if err := m.fuse.Alive(); err != nil {
		return ceph.Tree{}, err
	}
	return m.API.Tree(ctx)
}

func (m mortalCeph) SafeToDestroy(ctx context.Context, ids ...int) (ceph.Safety, error) {
	if err := m.fuse.Alive(); err != nil {
		return ceph.Safety{}, err
	}
	return m.API.SafeToDestroy(ctx, ids...)
}

func (m mortalCeph) Down(ctx context.Context, ids ...int) error {
	return m.fuse.Around("osd-down", func() error { return m.API.Down(ctx, ids...) })
}

func (m mortalCeph) Out(ctx context.Context, ids ...int) error {
	return m.fuse.Around("osd-out", func() error { return m.API.Out(ctx, ids...) })
}

func (m mortalCeph) In(ctx context.Context, ids ...int) error {
	return m.fuse.Around("osd-in", func() error { return m.API.In(ctx, ids...) })
}

func (m mortalCeph) Reweight(ctx context.Context, id int, weight float64) error {
	return m.fuse.Around("osd-reweight", func() error { return m.API.Reweight(ctx, id, weight) })
}

func (m mortalCeph) Purge(ctx context.Context, osd ceph.Ref, force bool) error {
	return m.fuse.Around("osd-purge "+strconv.Itoa(osd.ID), func() error { return m.API.Purge(ctx, osd, force) })
}

func (m mortalCeph) CrushRemove(ctx context.Context, host string) error {
	return m.fuse.Around("crush-rm "+host, func() error { return m.API.CrushRemove(ctx, host) })
}

// mortalRook is Rook as one incarnation reaches it.
type mortalRook struct {
	purge.Rook
	fuse *actionstest.Fuse
}

func (m mortalRook) Detect(ctx context.Context) (rook.Installation, error) {
	if err := m.fuse.Alive(); err != nil {
		return rook.Installation{}, err
	}
	return m.Rook.Detect(ctx)
}

func (m mortalRook) StorageNode(ctx context.Context, names ...string) (rook.StorageNode, error) {
	if err := m.fuse.Alive(); err != nil {
		return rook.StorageNode{}, err
	}
	return m.Rook.StorageNode(ctx, names...)
}

func (m mortalRook) OSDDeployments(ctx context.Context) ([]rook.OSDDeployment, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Rook.OSDDeployments(ctx)
}

func (m mortalRook) RemoveStorageNode(ctx context.Context, node rook.StorageNode) (removed json.RawMessage, err error) {
	err = m.fuse.Around("remove-storage-node", func() (err error) {
		removed, err = m.Rook.RemoveStorageNode(ctx, node)
		return err
	})
	return removed, err
}

func (m mortalRook) AddStorageNode(ctx context.Context, node rook.StorageNode) error {
	return m.fuse.Around("add-storage-node", func() error { return m.Rook.AddStorageNode(ctx, node) })
}

func (m mortalRook) OSDPods(ctx context.Context, node string) ([]rook.OSDPod, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Rook.OSDPods(ctx, node)
}

func (m mortalRook) ScaleDown(ctx context.Context, name, uid string) error {
	return m.fuse.Around("scale-down "+name, func() error { return m.Rook.ScaleDown(ctx, name, uid) })
}

func (m mortalRook) DeleteDeployment(ctx context.Context, name, uid string) error {
	return m.fuse.Around("delete-deployment "+name, func() error { return m.Rook.DeleteDeployment(ctx, name, uid) })
}

// mortalEtcd is etcd as one incarnation reaches it.
type mortalEtcd struct {
	etcd.API
	fuse *actionstest.Fuse
}

func (m mortalEtcd) Members(ctx context.Context) ([]etcd.Member, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.API.Members(ctx)
}

func (m mortalEtcd) RemoveMember(ctx context.Context, id etcd.ID) error {
	return m.fuse.Around("remove-member", func() error { return m.API.RemoveMember(ctx, id) })
}

// mortalKubeadm is kubeadm's ConfigMap as one incarnation reaches it.
type mortalKubeadm struct {
	purge.Kubeadm
	fuse *actionstest.Fuse
}

func (m mortalKubeadm) KubeadmConfig(ctx context.Context) (kube.KubeadmConfig, error) {
	if err := m.fuse.Alive(); err != nil {
		return kube.KubeadmConfig{}, err
	}
	return m.Kubeadm.KubeadmConfig(ctx)
}

func (m mortalKubeadm) WriteClusterStatus(ctx context.Context, text, version string) (written string, err error) {
	err = m.fuse.Around("write-cluster-status", func() (err error) {
		written, err = m.Kubeadm.WriteClusterStatus(ctx, text, version)
		return err
	})
	return written, err
}
