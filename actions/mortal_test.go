package actions_test

import (
	"context"
	"strconv"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
)

// mortalCeph is Ceph as one incarnation reaches it.
type mortalCeph struct {
	ceph.API
	fuse *fuse
}

func (m mortalCeph) Health(ctx context.Context) (ceph.Health, error) {
	if err := m.fuse.alive(); err != nil {
		return ceph.Health{}, err
	}
	return m.API.Health(ctx)
}

func (m mortalCeph) Tree(ctx context.Context) (ceph.Tree, error) {
	if err := m.fuse.alive(); err != nil {
		return ceph.Tree{}, err
	}
	return m.API.Tree(ctx)
}

func (m mortalCeph) SafeToDestroy(ctx context.Context, ids ...int) (ceph.Safety, error) {
	if err := m.fuse.alive(); err != nil {
		return ceph.Safety{}, err
	}
	return m.API.SafeToDestroy(ctx, ids...)
}

func (m mortalCeph) Down(ctx context.Context, ids ...int) error {
	return m.fuse.around("osd-down", func() error { return m.API.Down(ctx, ids...) })
}

func (m mortalCeph) Out(ctx context.Context, ids ...int) error {
	return m.fuse.around("osd-out", func() error { return m.API.Out(ctx, ids...) })
}

func (m mortalCeph) Purge(ctx context.Context, osd ceph.Ref) error {
	return m.fuse.around("osd-purge "+strconv.Itoa(osd.ID), func() error { return m.API.Purge(ctx, osd) })
}

func (m mortalCeph) CrushRemove(ctx context.Context, host string) error {
	return m.fuse.around("crush-rm "+host, func() error { return m.API.CrushRemove(ctx, host) })
}

// mortalRook is Rook as one incarnation reaches it.
type mortalRook struct {
	actions.Rook
	fuse *fuse
}

func (m mortalRook) StorageNodes(ctx context.Context) (actions.StorageNodes, error) {
	if err := m.fuse.alive(); err != nil {
		return actions.StorageNodes{}, err
	}
	return m.Rook.StorageNodes(ctx)
}

func (m mortalRook) OSDDeployments(ctx context.Context) ([]actions.OSDDeployment, error) {
	if err := m.fuse.alive(); err != nil {
		return nil, err
	}
	return m.Rook.OSDDeployments(ctx)
}

func (m mortalRook) RemoveStorageNode(ctx context.Context, entry actions.StorageNode) error {
	return m.fuse.around("remove-entry", func() error { return m.Rook.RemoveStorageNode(ctx, entry) })
}

func (m mortalRook) RemoveOSDDeployment(ctx context.Context, name, uid string) error {
	return m.fuse.around("remove-deployment "+name, func() error { return m.Rook.RemoveOSDDeployment(ctx, name, uid) })
}

// mortalEtcd is etcd as one incarnation reaches it.
type mortalEtcd struct {
	etcd.API
	fuse *fuse
}

func (m mortalEtcd) Members(ctx context.Context) ([]etcd.Member, error) {
	if err := m.fuse.alive(); err != nil {
		return nil, err
	}
	return m.API.Members(ctx)
}

func (m mortalEtcd) RemoveMember(ctx context.Context, id etcd.ID) error {
	return m.fuse.around("remove-member", func() error { return m.API.RemoveMember(ctx, id) })
}

// mortalKubeadm is kubeadm's ConfigMap as one incarnation reaches it.
type mortalKubeadm struct {
	actions.Kubeadm
	fuse *fuse
}

func (m mortalKubeadm) KubeadmConfig(ctx context.Context) (kube.KubeadmConfig, error) {
	if err := m.fuse.alive(); err != nil {
		return kube.KubeadmConfig{}, err
	}
	return m.Kubeadm.KubeadmConfig(ctx)
}

func (m mortalKubeadm) WriteClusterStatus(ctx context.Context, text, version string) (written string, err error) {
	err = m.fuse.around("write-cluster-status", func() (err error) {
		written, err = m.Kubeadm.WriteClusterStatus(ctx, text, version)
		return err
	})
	return written, err
}
