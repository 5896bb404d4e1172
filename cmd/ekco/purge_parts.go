package main

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/observers"
)

// outsideCalls are called after each call to ceph and etcd.
type outsideCalls struct {
	ceph ceph.OnCommand
	etcd etcd.OnCall
}

// timeCalls counts and logs calls, to find out where a purge spends its time.
func timeCalls(metrics *api.Metrics, log *slog.Logger) outsideCalls {
	logged := func(message string, count func(string, time.Duration, error)) func(string, time.Duration, error) {
		return func(kind string, took time.Duration, err error) {
			count(kind, took, err)
			attrs := []slog.Attr{slog.String("call", kind), slog.Duration("took", took)}
			if err != nil {
				attrs = append(attrs, slog.Any("error", err))
			}
			log.LogAttrs(context.Background(), slog.LevelDebug, message, attrs...)
		}
	}
	return outsideCalls{ceph: logged("asked ceph", metrics.CephRan), etcd: logged("asked etcd", metrics.EtcdAnswered)}
}

// outside has the clients of a purge beyond the Kubernetes API.
type outside struct {
	etcd etcd.Dial
	rook rook.API
	ceph ceph.API
}

// reachOutside returns the clients; readOnly is for those that do not use the Kubernetes API. They send nothing
// before a purge.
func reachOutside(cfg config.Config, readOnly bool, restConfig *rest.Config, calls outsideCalls) (outside, error) {
	installed, err := rook.NewClient(restConfig, kube.Options{UserAgent: "ekco/" + version.Get().Version})
	if err != nil {
		return outside{}, err
	}
	return outside{
		etcd: etcd.Dialer(etcd.Options{CertificatesDir: cfg.CertificatesDir, OnCall: calls.etcd, ReadOnly: readOnly}),
		rook: installed,
		ceph: ceph.New(rook.NewRunner(installed), cephOptions(readOnly, calls)),
	}, nil
}

func cephOptions(readOnly bool, calls outsideCalls) ceph.Options {
	return ceph.Options{OnCommand: calls.ceph, ReadOnly: readOnly, MaxAge: cephMaxAge}
}

// cephMaxAge is how long an answer of Ceph is reused, for a check and the step after it. Each question takes a purge
// about 50 ms, in which Ceph could change as well.
const cephMaxAge = 500 * time.Millisecond

// afterProof is when a purge has certainly verified its change: the observers must not delay that.
const afterProof = time.Second

// noticing also triggers the observers of Ceph's hosts after a host was removed from the CRUSH map, which EKCO cannot
// watch.
func noticing(hosts *observers.Nudge, report ceph.OnCommand) ceph.OnCommand {
	return func(kind string, took time.Duration, err error) {
		report(kind, took, err)
		if kind == "osd crush rm" && err == nil {
			time.AfterFunc(afterProof, hosts.Look)
		}
	}
}

// purgeParts connects a purge with etcd, kubeadm's ConfigMap and Ceph.
func purgeParts(c cluster) []purge.Option {
	return []purge.Option{
		purge.WithResidents(c.kube),
		purge.WithControlPlane(purge.ControlPlane{Kubeadm: c.kube, Etcd: c.outside.etcd}),
		purge.WithStorage(purge.Storage{
			Ceph:        c.outside.ceph,
			Rook:        c.outside.rook,
			UserManaged: c.cfg.RookStorageNodes != "",
			Unmanaged:   !c.cfg.MaintainRookStorageNodes,
			Wait:        c.cfg.OSDPurgeWait,
		}),
	}
}
