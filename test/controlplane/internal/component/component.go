package component

// Names of the embedded programs, as Run takes them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Kubectl           = "kubectl"
	// Kubelet and Proxy are started by who makes a real node, not by the plane.
	Kubelet = "kubelet"
	Proxy   = "kube-proxy"
	// Kubeadm writes what a primary has on its disk.
	Kubeadm = "kubeadm"
)

// ExecServer is the name of the component that is this module's own, package
// execserver.
const ExecServer = "exec-server"

// Names returns the names of all embedded programs.
func Names() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok, Kubectl, Kubelet, Proxy, Kubeadm}
}
