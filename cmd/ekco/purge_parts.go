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

// externalCalls has callbacks that run after each call to ceph and etcd.
type externalCalls struct {
	ceph ceph.OnCommand
	etcd etcd.OnCall
}

// measureCalls returns callbacks that count and log calls, to show where a purge spends its time.
func measureCalls(metrics *api.Metrics, log *slog.Logger) externalCalls {
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
	return externalCalls{ceph: logged("asked ceph", metrics.CephRan), etcd: logged("asked etcd", metrics.EtcdAnswered)}
}

// externalClients has the clients of etcd, Rook and Ceph.
type externalClients struct {
	etcd etcd.Dial
	rook rook.API
	ceph ceph.API
}

// newExternalClients creates the clients, without sending a request. With readOnly they refuse changes.
func newExternalClients(cfg config.Config, readOnly bool, restConfig *rest.Config, calls externalCalls) (externalClients, error) {
	installed, err := rook.NewClient(restConfig, kube.Options{UserAgent: "ekco/" + version.Get().Version})
	if err != nil {
		return externalClients{}, err
	}
	return externalClients{
		etcd: etcd.Dialer(etcd.Options{CertificatesDir: cfg.CertificatesDir, OnCall: calls.etcd, ReadOnly: readOnly}),
		rook: installed,
		ceph: ceph.New(rook.NewRunner(installed), cephOptions(readOnly, calls)),
	}, nil
}

func cephOptions(readOnly bool, calls externalCalls) ceph.Options {
	return ceph.Options{OnCommand: calls.ceph, ReadOnly: readOnly, MaxAge: cephMaxAge}
}

// cephMaxAge is how long an answer of Ceph is reused, so that a check and the next step can share it. Ceph can change
// as much during a call, which takes about 50 ms.
const cephMaxAge = 500 * time.Millisecond

// hostTriggerDelay is longer than a purge needs to verify its change, so that the observers do not slow the purge down.
const hostTriggerDelay = time.Second

// triggerHosts returns report with an addition: after a host was removed from the CRUSH map, it also triggers the
// observers of Ceph's hosts, because EKCO cannot watch that map.
func triggerHosts(hosts *observers.Nudge, report ceph.OnCommand) ceph.OnCommand {
	return func(kind string, took time.Duration, err error) {
		report(kind, took, err)
		if kind == "osd crush rm" && err == nil {
			time.AfterFunc(hostTriggerDelay, hosts.Look)
		}
	}
}

// purgeOptions gives a purge its access to etcd, kubeadm's ConfigMap and Ceph.
func purgeOptions(c cluster) []purge.Option {
	return []purge.Option{
		purge.WithResidents(c.kube),
		purge.WithControlPlane(purge.ControlPlane{Kubeadm: c.kube, Etcd: c.outside.etcd}),
		purge.WithStorage(purge.Storage{
			Ceph:                  c.outside.ceph,
			Rook:                  c.outside.rook,
			UserManaged:           c.cfg.RookStorageNodes != "",
			NodeListOnlyOnRequest: !c.cfg.MaintainRookStorageNodes,
			Wait:                  c.cfg.OSDPurgeWait,
		}),
	}
}
