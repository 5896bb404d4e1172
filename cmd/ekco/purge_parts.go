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
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/observers"
)

// outsideCalls are attrs what ceph and etcd took.
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
			attrs := []slog.Attr{slog.String("call", kind), slog.Duration("took", took)}
			if err != nil {
				attrs = append(attrs, slog.Any("error", err))
			}
			log.LogAttrs(context.Background(), slog.LevelDebug, message, attrs...)
		}
	}
	return outsideCalls{ceph: logged("asked ceph", metrics.CephRan), etcd: logged("asked etcd", metrics.EtcdAnswered)}
}

// outside is what a purge reaches beyond the Kubernetes API.
type outside struct {
	etcd etcd.Dial
	rook rook.API
	ceph ceph.API
}

// reachOutside returns clients, of which those that are not the Kubernetes API's are
// told whether they only read. Nothing is sent before a purge.
func reachOutside(cfg config.Config, readOnly bool, restConfig *rest.Config, calls outsideCalls) (outside, error) {
	installed, err := rook.NewClient(restConfig, rook.Options{UserAgent: "ekco/" + version.Get().Version})
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

// cephMaxAge is for how long an answer of Ceph does for what asks the same: a check, and the step
// after it. Each question costs a purge some 50 ms, in which Ceph could change as well.
const cephMaxAge = 500 * time.Millisecond

// afterProof is when a purge has surely asked whether its change is done, which is not to wait
// for what others want to know then.
const afterProof = time.Second

// noticing also has somebody look when a host was removed from the CRUSH map, which nothing that
// can be watched shows.
func noticing(hosts *observers.Nudge, told ceph.OnCommand) ceph.OnCommand {
	return func(kind string, took time.Duration, err error) {
		told(kind, took, err)
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
