package main

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/api"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/version"
)

// outsideCalls are told what ceph and etcd took.
type outsideCalls struct {
	ceph ceph.OnCommand
	etcd etcd.OnCall
}

// timeCalls counts calls, and logs them for who wants to know where the time of
// a purge went.
func timeCalls(metrics *api.Metrics, log *slog.Logger) outsideCalls {
	logged := func(message string, count func(string, time.Duration, error)) func(string, time.Duration, error) {
		return func(kind string, took time.Duration, err error) {
			count(kind, took, err)
			told := []slog.Attr{slog.String("call", kind), slog.Duration("took", took)}
			if err != nil {
				told = append(told, slog.Any("error", err))
			}
			log.LogAttrs(context.Background(), slog.LevelDebug, message, told...)
		}
	}
	return outsideCalls{ceph: logged("asked ceph", metrics.CephRan), etcd: logged("asked etcd", metrics.EtcdAnswered)}
}

// purgeParts connects a purge with etcd, kubeadm's ConfigMap and Ceph. Nothing
// is sent before a purge.
func purgeParts(cfg config.Config, restConfig *rest.Config, client *kube.Client, calls outsideCalls) ([]actions.PurgeOption, error) {
	parts := []actions.PurgeOption{actions.PurgeControlPlane(actions.ControlPlane{
		Kubeadm: client,
		Etcd:    etcd.Dialer(etcd.Options{CertificatesDir: cfg.CertificatesDir, OnCall: calls.etcd}),
	})}
	installed, err := rook.NewClient(restConfig, rook.Options{UserAgent: "ekco/" + version.Get().Version})
	if err != nil {
		return nil, err
	}
	return append(parts, actions.PurgeStorage(actions.Storage{
		Ceph:        ceph.New(rook.NewRunner(installed), ceph.Options{OnCommand: calls.ceph}),
		Rook:        installed,
		UserManaged: cfg.RookStorageNodes != "",
		OnlyAsked:   !cfg.MaintainRookStorageNodes,
		Wait:        cfg.OSDPurgeWait,
	})), nil
}
