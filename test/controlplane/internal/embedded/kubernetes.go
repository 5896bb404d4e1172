package embedded

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // auth plugins of kubectl
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

func runEtcd(args []string) int {
	etcdmain.Main(append([]string{component.Etcd}, args...))
	return 0
}

func runAPIServer(args []string) int {
	return runCommand(apiserver.NewAPIServerCommand(), args)
}

func runControllerManager(args []string) int {
	return runCommand(controllermanager.NewControllerManagerCommand(), args)
}

func runScheduler(args []string) int {
	return runCommand(scheduler.NewSchedulerCommand(), args)
}

func runKubelet(args []string) int {
	return runCommand(kubelet.NewKubeletCommand(context.Background()), args)
}

func runProxy(args []string) int {
	return runCommand(proxy.NewProxyCommand(), args)
}

func runCommand(cmd *cobra.Command, args []string) int {
	cmd.SetArgs(args)
	return cli.Run(cmd)
}

// runKubeadm sets os.Args because kubeadm reads them itself.
func runKubeadm(args []string) int {
	os.Args = append([]string{component.Kubeadm}, args...)
	if err := kubeadm.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubeadm:", err)
		return 1
	}
	return 0
}

// runKubectl sets os.Args because kubectl reads them itself, for plugins and
// for its verbosity flag.
func runKubectl(args []string) int {
	os.Args = append([]string{component.Kubectl}, args...)
	// As in kubectl's own main: the error is reported when the flag is parsed.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
