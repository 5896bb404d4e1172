package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
)

// componentTimeout is how long a component may take to become ready. Normally it takes two to three seconds, but
// minutes on a very busy machine. The supervisor notices a component that ends at once.
const componentTimeout = 10 * time.Minute

// Options say what to start.
type Options struct {
	Dir       Dir // absolute
	Primaries int
	Workers   int
	Pods      int           // replicas of the demo workload; 0 for none
	Grace     time.Duration // termination grace period of the demo workload's pods, whole seconds
	Scale     bool          // for thousands of nodes
	PortBase  int           // first port; 0 picks free ones
	Exec      string        // absolute path of the program that runs for exec into pods; "" refuses exec
	Progress  io.Writer     // a line for each stage
}

func (o Options) pace() pace {
	if o.Scale {
		return scale
	}
	return normal
}

// Run starts a control plane, calls ready when everything requested exists, and keeps it running until ctx ends; then
// it returns nil. In every case all components have ended when Run returns. If the process is killed, the kernel kills
// the components.
func Run(ctx context.Context, o Options, ready func()) (err error) {
	// The kernel ends the children with the thread that started them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	lock, err := o.Dir.prepare()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	s, err := newSupervisor(o.Dir, o.Progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()

	ports, err := reservePorts(ctx, o.PortBase)
	if err != nil {
		return err
	}
	defer ports.release()
	if err := s.writeFiles(ports, o.pace()); err != nil {
		return err
	}
	if err := s.startAll(ctx, ports, o); err != nil {
		return err
	}
	s.stage("everything is ready")
	ready()
	return s.run(ctx)
}

func (s *supervisor) writeFiles(p *ports, t pace) error {
	if err := s.dir.writePids(s.running); err != nil {
		return err
	}
	if err := p.write(s.dir.ports()); err != nil {
		return err
	}
	if err := s.dir.writeIdentities(p.server()); err != nil {
		return err
	}
	if err := s.dir.writeKwokConfig(t); err != nil {
		return err
	}
	s.stage("certificates and kubeconfigs are written")
	return nil
}

func (s *supervisor) startAll(ctx context.Context, p *ports, o Options) error {
	if err := s.startEtcd(ctx, p); err != nil {
		return err
	}
	apiserver, err := s.start(ctx, s.dir.apiserverChild(p, o.pace()))
	if err != nil {
		return err
	}
	client, err := cluster.Client(s.dir.Kubeconfig())
	if err != nil {
		return err
	}
	err = s.await(ctx, apiserver, func(ctx context.Context) error { return readyz(ctx, client) })
	if err != nil {
		return err
	}
	s.stage("kube-apiserver is ready at " + p.server())
	return s.startRest(ctx, p, o, client)
}

func (s *supervisor) startEtcd(ctx context.Context, p *ports) error {
	etcd, err := s.start(ctx, s.dir.etcdChild(p))
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", p.etcd)
	if err := s.await(ctx, etcd, func(ctx context.Context) error { return dial(ctx, address) }); err != nil {
		return err
	}
	s.stage("etcd listens on " + address)
	return nil
}

// startRest starts the components that need the API, and creates the simulated nodes.
func (s *supervisor) startRest(ctx context.Context, p *ports, o Options, client kubernetes.Interface) error {
	controllers, err := s.start(ctx, s.dir.controllerManagerChild(o.pace()))
	if err != nil {
		return err
	}
	scheduler, err := s.start(ctx, s.dir.schedulerChild(o.pace()))
	if err != nil {
		return err
	}
	kwok, err := s.start(ctx, s.dir.kwokChild(p))
	if err != nil {
		return err
	}
	execServer, err := s.start(ctx, s.dir.execServerChild(p, o.Exec))
	if err != nil {
		return err
	}
	err = s.await(ctx, controllers, func(ctx context.Context) error {
		return cluster.HasDefaultAccount(ctx, client, metav1.NamespaceDefault)
	})
	if err != nil {
		return err
	}
	s.stage("kube-controller-manager works")
	execAddress := fmt.Sprintf("127.0.0.1:%d", p.execServer)
	if err := s.await(ctx, execServer, func(ctx context.Context) error { return dial(ctx, execAddress) }); err != nil {
		return err
	}
	if err := s.startNodes(ctx, client, kwok, o); err != nil {
		return err
	}
	return s.startWorkload(ctx, client, scheduler, o)
}

func (s *supervisor) startNodes(ctx context.Context, client kubernetes.Interface, kwok *process, o Options) error {
	nodes := cluster.Initial(o.Primaries, o.Workers)
	if len(nodes) == 0 {
		return nil
	}
	for _, node := range nodes {
		if err := cluster.Add(ctx, client, node); err != nil {
			return err
		}
	}
	err := s.await(ctx, kwok, func(ctx context.Context) error {
		for _, node := range nodes {
			if err := cluster.IsUp(ctx, client, node.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stage(fmt.Sprintf("%d primaries and %d workers are ready", o.Primaries, o.Workers))
	return nil
}

func (s *supervisor) startWorkload(ctx context.Context, client kubernetes.Interface, scheduler *process, o Options) error {
	if o.Pods == 0 {
		return nil
	}
	if err := cluster.CreateDemo(ctx, client, o.Pods, o.Grace); err != nil {
		return err
	}
	err := s.await(ctx, scheduler, func(ctx context.Context) error {
		return cluster.DemoReady(ctx, client)
	})
	if err != nil {
		return err
	}
	s.stage(fmt.Sprintf("%d pods of %s/%s are ready", o.Pods, cluster.DemoNamespace, cluster.DemoName))
	return nil
}

func readyz(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
