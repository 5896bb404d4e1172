package embedded

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

// Run runs the embedded program name with args (program name not included) and
// returns its exit code, unless the program exits the process itself. The
// programs have global state (flag sets, loggers), so call Run once per process.
func Run(name string, args []string) (int, error) {
	switch name {
	case component.Etcd:
		return runEtcd(args), nil
	case component.APIServer:
		return runAPIServer(args), nil
	case component.ControllerManager:
		return runControllerManager(args), nil
	case component.Scheduler:
		return runScheduler(args), nil
	case component.Kwok:
		return runKwok(args), nil
	case component.Kubelet:
		return runKubelet(args), nil
	case component.Proxy:
		return runProxy(args), nil
	case component.Kubeadm:
		return runKubeadm(args), nil
	case component.Kubectl:
		return runKubectl(args), nil
	default:
		return 0, fmt.Errorf("no embedded program %q: there are %s", name, strings.Join(component.Names(), ", "))
	}
}
