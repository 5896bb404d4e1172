package plane

import (
	"fmt"
	"syscall"
	"time"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

// pace has the intervals and limits that depend on the number of nodes.
type pace struct {
	monitorPeriod   time.Duration // a node with Ready=Unknown is tainted at the next check
	kwokParallelism int
	qps             int
	gogc            int // GOGC of the API server
}

var (
	// normal needs some 150 MiB more memory to save time: the API server collects garbage less often, and uses a tenth
	// less CPU time at its start.
	normal = pace{monitorPeriod: 500 * time.Millisecond, kwokParallelism: 16, qps: 1000, gogc: 400}
	// scale is for thousands of nodes.
	scale = pace{monitorPeriod: 2 * time.Second, kwokParallelism: 64, qps: 5000, gogc: 100}
)

// leaseSeconds is Kubernetes' default. Simulated kubelets renew a lease after a quarter of
// it, and a node is lost after 50 s without a renewal, which is rare even on a busy
// machine. [cluster.Lose] does not wait for that.
const leaseSeconds = 40

// tolerationSeconds is how long pods without their own tolerations stay on an unreachable or unready node before they
// are evicted.
const tolerationSeconds = 2

// child is one component with its arguments.
type child struct {
	name string
	args []string
	// env has additional environment variables.
	env []string
	// end is the signal that ends the component when it is stopped and when its supervisor dies. 0 means SIGKILL, for
	// components that have nothing to clean up.
	end syscall.Signal
}

func (d Dir) etcdChild(p *ports) child {
	client := fmt.Sprintf("https://127.0.0.1:%d", p.etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.etcdPeer)
	return child{name: component.Etcd, args: []string{
		"--name=etcd",
		"--data-dir=" + d.etcd(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		"--cert-file=" + d.pki("etcd.crt"),
		"--key-file=" + d.pki("etcd.key"),
		"--trusted-ca-file=" + d.pki("ca.crt"),
		"--client-cert-auth",
		"--unsafe-no-fsync",
		"--log-level=warn",
	}}
}

func (d Dir) apiserverChild(p *ports, t pace) child {
	env := []string{fmt.Sprintf("GOGC=%d", t.gogc)}
	return child{name: component.APIServer, env: env, args: []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", p.apiserver),
		"--tls-cert-file=" + d.pki("apiserver.crt"),
		"--tls-private-key-file=" + d.pki("apiserver.key"),
		"--client-ca-file=" + d.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", p.etcd),
		"--etcd-cafile=" + d.pki("ca.crt"),
		"--etcd-certfile=" + d.pki("etcd.crt"),
		"--etcd-keyfile=" + d.pki("etcd.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + d.pki("sa.pub"),
		"--service-account-signing-key-file=" + d.pki("sa.key"),
		fmt.Sprintf("--default-not-ready-toleration-seconds=%d", tolerationSeconds),
		fmt.Sprintf("--default-unreachable-toleration-seconds=%d", tolerationSeconds),
		"--kubelet-preferred-address-types=ExternalIP,InternalIP",
		"--kubelet-certificate-authority=" + d.pki("ca.crt"),
		"--kubelet-client-certificate=" + d.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + d.pki("apiserver-kubelet-client.key"),
	}}
}

func (d Dir) controllerManagerChild(t pace) child {
	return child{name: component.ControllerManager, args: []string{
		"--kubeconfig=" + d.config(component.ControllerManager),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + d.pki("sa.key"),
		"--root-ca-file=" + d.pki("ca.crt"),
		"--cluster-signing-cert-file=" + d.pki("ca.crt"),
		"--cluster-signing-key-file=" + d.pki("ca.key"),
		fmt.Sprintf("--node-monitor-period=%s", t.monitorPeriod),
		"--node-eviction-rate=100",
		"--secondary-node-eviction-rate=100",
		"--large-cluster-size-threshold=1",
		"--pvclaimbinder-sync-period=1s", // by default a new volume may wait 15 s for its claim
		fmt.Sprintf("--kube-api-qps=%d", t.qps),
		fmt.Sprintf("--kube-api-burst=%d", 2*t.qps),
	}}
}

func (d Dir) schedulerChild(t pace) child {
	return child{name: component.Scheduler, args: []string{
		"--kubeconfig=" + d.config(component.Scheduler),
		"--secure-port=0",
		"--leader-elect=false",
		fmt.Sprintf("--kube-api-qps=%d", t.qps),
		fmt.Sprintf("--kube-api-burst=%d", 2*t.qps),
	}}
}

// othersKubelet is the annotation of pods that kwok ignores: the user of the control plane runs and ends them in place
// of a kubelet.
const othersKubelet = "sim/kubelet=other"

// kwokChild returns the component that simulates the kubelet of every node with the label cluster.KubeletUp.
func (d Dir) kwokChild(p *ports) child {
	return child{name: component.Kwok, args: []string{
		"--config=" + d.kwokConfig(),
		"--kubeconfig=" + d.config("kwok"),
		"--manage-all-nodes=false",
		"--manage-nodes-with-label-selector=" + cluster.KubeletUp,
		"--disregard-status-with-annotation-selector=" + othersKubelet,
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
		"--node-ip=127.0.0.1",
		fmt.Sprintf("--node-port=%d", p.execServer),
		fmt.Sprintf("--server-address=127.0.0.1:%d", p.kwok),
		"--cidr=10.244.0.0/16",
		"--v=WARN", // INFO has a line for each lease renewal
	}}
}

// execServerChild returns the component that serves exec for every node. It ends the programs that it runs, with their
// process groups, before it ends itself.
func (d Dir) execServerChild(p *ports, program string) child {
	return child{name: component.ExecServer, end: syscall.SIGTERM, args: []string{
		fmt.Sprintf("--address=127.0.0.1:%d", p.execServer),
		"--kubeconfig=" + d.config(component.ExecServer),
		"--cert=" + d.pki(component.ExecServer+".crt"),
		"--key=" + d.pki(component.ExecServer+".key"),
		"--client-ca=" + d.pki("ca.crt"),
		"--client=" + kubeletClient,
		"--program=" + program,
	}}
}
