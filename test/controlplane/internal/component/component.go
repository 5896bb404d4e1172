package component

// Names of the embedded programs, as Run takes them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Kubectl           = "kubectl"
	// Kubelet and Proxy are for the real nodes of test/node. Package plane does not start them.
	Kubelet = "kubelet"
	Proxy   = "kube-proxy"
	// Kubeadm writes the certificates, kubeconfigs and static pods of a primary.
	Kubeadm = "kubeadm"
)

// ExecServer is the name of the component of package execserver.
const ExecServer = "exec-server"

// Names returns the names of all embedded programs.
func Names() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok, Kubectl, Kubelet, Proxy, Kubeadm}
}
