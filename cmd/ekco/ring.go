package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// ringOptions configure a ring.
type ringOptions struct {
	// OneShot is true for the ring of a single node's purge when no operator runs. Such a ring starts no automatic
	// actions and opens no network port.
	OneShot bool
	// Node is the node of a OneShot ring.
	Node string
	// DryRun forbids changes outside the journal.
	DryRun bool
	// WithoutOperator starts a OneShot although an operator with another journal may run.
	WithoutOperator bool
}

// readOnly reports whether changes outside the journal are forbidden.
func (o ringOptions) readOnly(cfg config.Config) bool { return cfg.DryRun || o.DryRun }

// clientTerms returns the terms for the clients of the Kubernetes API.
func (o ringOptions) clientTerms(cfg config.Config, unanswered func(error)) kube.Terms {
	return kube.Terms{ReadOnly: o.readOnly(cfg), Unanswered: unanswered}
}

// startRing opens the journal and starts a ring with its socket and, unless it is OneShot, its network port. stop stops
// the ring in order and returns its error. done is closed when the ring has ended, also without stop.
func startRing(ctx context.Context, cfg config.Config, options ringOptions, log *slog.Logger) (backend api.Backend, done <-chan struct{}, stop func() error, err error) {
	if err := detectSilentServer(); err != nil {
		return nil, nil, nil, err
	}
	// client-go writes its log through klog.
	klog.SetSlogLogger(log)
	now := clock.New(clock.Machine())
	store, closeStore, err := openJournal(ctx, cfg, options, now, log)
	if err != nil {
		return nil, nil, nil, err
	}
	metrics := api.NewMetrics()
	running, err := newRing(ctx, cfg, options, store, now, metrics, log)
	if err != nil {
		return nil, nil, nil, errors.Join(err, closeStore())
	}
	services, err := listen(ctx, cfg, options, running, store, metrics, log)
	if err != nil {
		return nil, nil, nil, errors.Join(err, closeStore())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	var result error
	go func() {
		defer close(ended)
		result = errors.Join(runTogether(ctx, append(services, running.Run)...), closeStore())
	}()
	stop = func() error {
		cancel()
		<-ended
		return result
	}
	return running.Backend(archive{store}), ended, stop, nil
}

// detectSilentServer makes client-go ping the API server over HTTP/2 after 5 s without data, and close the connection 5
// s later. By default this takes 45 s, and a server that hangs looks like a quiet cluster. client-go reads these times
// only from environment variables.
func detectSilentServer() error {
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, "5"); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

func newRing(ctx context.Context, cfg config.Config, options ringOptions, store *bolt.Store, now *clock.Clock, metrics *api.Metrics, log *slog.Logger) (*ring.Ring, error) {
	unanswered := &ring.Unanswered{}
	reached, err := newClients(cfg, options.clientTerms(cfg, unanswered.Report), metrics, log)
	if err != nil {
		return nil, err
	}
	ringConfig := ring.Config{
		Store: store, Clock: now, Kube: reached.kube, Policy: policyOf(cfg), Retry: retryPolicy(cfg), Log: log, Metrics: metrics,
		Unanswered: unanswered, Identity: identity(cfg),
		Observe: observe(reached.kube, now.Now, cfg, metrics.Observed, log),

		Capabilities: capabilities(reached),
	}
	ringConfig.Policy.DryRun = options.readOnly(cfg)
	if options.OneShot {
		ringConfig.Only = ring.Only{Kind: journal.ActionPurgeNode, Name: options.Node}
		ringConfig.Identity.Command = "purge-node " + options.Node
		return ring.New(ctx, ringConfig)
	}
	ringConfig.Beside = hostTaskCleanup(reached)
	if undone := cfg.Undone(); undone != "" {
		ringConfig.NotDone = []string{undone}
	}
	return ring.New(ctx, ringConfig)
}

func newClient(cfg config.Config, terms kube.Terms, metrics *api.Metrics) (*rest.Config, *kube.Client, error) {
	terms.OnRequest = metrics.Requested
	restConfig, err := kube.Connect(cfg.Kubeconfig, terms)
	if err != nil {
		return nil, nil, err
	}
	client, err := kube.NewClient(restConfig, kubeOptions(cfg))
	return restConfig, client, err
}

// kubeOptions returns the options of the clients of the Kubernetes API.
func kubeOptions(cfg config.Config) kube.Options {
	return kube.Options{Namespace: cfg.HostTaskNamespace, UserAgent: "ekco/" + version.Get().Version, NodeLabels: nodeLabels(cfg)}
}

// nodeLabels returns the labels of nodes that the settings name.
func nodeLabels(cfg config.Config) []string {
	if label, _, _ := strings.Cut(cfg.RookStorageNodesLabel, "="); label != "" {
		return []string{label}
	}
	return nil
}

// identity describes this process.
func identity(cfg config.Config) journal.OperatorStarted {
	host := os.Getenv("NODE_NAME") // the name of a pod does not say on which machine the journal is
	if name, err := os.Hostname(); host == "" && err == nil {
		host = name
	}
	return journal.OperatorStarted{
		Version: version.Get().Version, Host: host, PID: os.Getpid(), Settings: cfg.Redacted(),
	}
}

// service is a function that runs until its context ends.
type service func(ctx context.Context) error

// listen opens the socket and the port at once, so that a port in use is an error at the start, and returns the
// services on them. A dry run for one node has no services, because a real request of another client would become a dry
// run.
func listen(ctx context.Context, cfg config.Config, options ringOptions, running *ring.Ring, store *bolt.Store, metrics *api.Metrics, log *slog.Logger) ([]service, error) {
	if options.OneShot && options.DryRun {
		return nil, nil
	}
	socket, err := api.Listen(ctx, cfg.Socket())
	if err != nil {
		return nil, err
	}
	services := []service{func(ctx context.Context) error {
		return api.Serve(ctx, socket, running.Backend(archive{store}), log)
	}}
	if options.OneShot {
		return services, nil
	}
	port, err := listenPort(ctx, cfg, log)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	metrics.Attend(running.Backend(nil).Status, capabilities(cluster{}).Vocabulary().Verb)
	return append(services,
		func(ctx context.Context) error { return api.ServeHTTP(ctx, port, running, metrics.Gatherer(), log) },
		(&housekeeper{cfg: cfg, needed: running.Needed, mayPrune: running.MayPrune, store: store, metrics: metrics, log: log}).run,
	), nil
}

// listenPort opens the network port.
func listenPort(ctx context.Context, cfg config.Config, log *slog.Logger) (net.Listener, error) {
	port, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.ListenAddress)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (listen_address): %w", cfg.ListenAddress, err)
	}
	log.Info("serving /healthz, /readyz and /metrics", "address", port.Addr().String())
	return port, nil
}

// runTogether runs the services until ctx ends or one of them ends. Then it stops the others and waits for them.
func runTogether(ctx context.Context, services ...service) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(services))
	var running sync.WaitGroup
	for i, serve := range services {
		running.Go(func() {
			defer cancel()
			errs[i] = serve(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
