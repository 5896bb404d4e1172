package main

import (
	"time"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/version"
)

// cephPatience keeps a command that hangs, as some do without a mgr, shorter
// than what a preflight may take, so that it is ceph that says why.
var cephPatience = ceph.Options{Timeout: 12 * time.Second, ConnectTimeout: 8 * time.Second, Grace: 4 * time.Second}

// purgeParts connects a purge with etcd, kubeadm's ConfigMap and, unless Rook
// is managed by somebody else, with Ceph. Nothing is sent before a purge.
func purgeParts(cfg config.Config, restConfig *rest.Config, client *kube.Client) ([]actions.PurgeOption, error) {
	parts := []actions.PurgeOption{actions.PurgeControlPlane(actions.ControlPlane{
		Kubeadm: client,
		Etcd:    etcd.Dialer(etcd.Options{CertificatesDir: cfg.CertificatesDir}),
	})}
	if !cfg.MaintainRookStorageNodes {
		return parts, nil
	}
	installed, err := rook.NewClient(restConfig, rook.Options{UserAgent: "ekco/" + version.Get().Version})
	if err != nil {
		return nil, err
	}
	return append(parts, actions.PurgeStorage(actions.Storage{
		Ceph:        ceph.New(rook.Runner{API: installed, Version: rook.VersionOf(installed)}, cephPatience),
		Rook:        installed,
		UserManaged: cfg.RookStorageNodes != "",
		Wait:        cfg.OSDPurgeWait,
	})), nil
}
