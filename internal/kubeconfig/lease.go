package kubeconfig

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/internal/durable"
)

// askTimeout is how long an API server may take to answer.
const askTimeout = 5 * time.Second

// LeaseRenewed returns when the kubelet of a node last renewed its Lease, according to the API server at an
// address. It uses the kubelet's credentials and CA from this kubeconfig, and a new connection each time. A
// kubelet may read the Lease of its own node.
func (f File) LeaseRenewed(ctx context.Context, server, node string) (time.Time, error) {
	config, err := f.client()
	if err != nil {
		return time.Time{}, err
	}
	var lease coordinationv1.Lease
	if err := get(ctx, config, server, leasePath(node), &lease); err != nil {
		return time.Time{}, fmt.Errorf("read the Lease of node %s from %s: %w", node, Redacted(server), err)
	}
	if lease.Spec.RenewTime == nil {
		return time.Time{}, fmt.Errorf("the Lease of node %s was never renewed", node)
	}
	return lease.Spec.RenewTime.Time, nil
}

func leasePath(node string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases/" + url.PathEscape(node)
}

// AnyServes returns an error unless an API server of the kubelet's cluster answers at one of these addresses,
// each with a port. It asks all of them for the Lease of the node, like [File.LeaseRenewed]. The server's
// certificate must have the name of the kubeconfig's server.
func (f File) AnyServes(ctx context.Context, addresses []string, node string) error {
	config, err := f.clientOfAny()
	if err != nil {
		return err
	}
	failures := make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() {
			failures[i] = get(ctx, config, "https://"+address, leasePath(node), new(coordinationv1.Lease))
		})
	}
	asking.Wait()
	if slices.Contains(failures, nil) {
		return nil
	}
	return fmt.Errorf("no API server answers this node at %s: %w", strings.Join(addresses, ", "), errors.Join(failures...))
}

// AwaitPod waits until fits accepts a pod of the kubelet's node, as read from the API server at an address of
// this host. It connects like [File.AnyServes]. After the timeout it returns the last error.
func (f File) AwaitPod(ctx context.Context, address, namespace, name string, timeout time.Duration, fits func(*corev1.Pod) error) error {
	config, err := f.clientOfAny()
	if err != nil {
		return err
	}
	return await(ctx, timeout, func(ctx context.Context) error {
		var pod corev1.Pod
		if err := get(ctx, config, "https://"+address, "/api/v1/namespaces/"+namespace+"/pods/"+url.PathEscape(name), &pod); err != nil {
			return fmt.Errorf("read pod %s/%s from the API server at %s: %w", namespace, name, address, err)
		}
		return fits(&pod)
	})
}

// client returns the credentials and the CA in the kubeconfig.
func (f File) client() (*rest.Config, error) {
	content, err := durable.Read(f.Path, largest)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content) //nolint:forbidigo // the kubelet's credentials, only used to read
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Path, err)
	}
	if config.ExecProvider != nil || config.AuthProvider != nil {
		return nil, fmt.Errorf("%s gets its credentials from a program, want a client certificate", f.Path)
	}
	return config, nil
}

// clientOfAny is [File.client] for servers at other addresses, whose certificates have the name of the
// kubeconfig's server.
func (f File) clientOfAny() (*rest.Config, error) {
	config, err := f.client()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the server in %s is not a URL: %s", f.Path, Redacted(config.Host)) // the error has the password
	}
	config.ServerName = cmp.Or(config.ServerName, server.Hostname())
	return config, nil
}

// askInterval is how often [await] asks.
const askInterval = time.Second

// await calls ask until it returns nil. After the timeout it returns the last error, or the cause if ctx is canceled.
func await(ctx context.Context, timeout time.Duration, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, askInterval, timeout, true, func(ctx context.Context) (bool, error) {
		if err := ask(ctx); err == nil || last == nil || ctx.Err() == nil { // when ctx ends, the earlier error says more
			last = err
		}
		return last == nil, nil
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return last
}

// get reads an object with these credentials on a new connection, and only over TLS.
func get(ctx context.Context, config *rest.Config, server, path string, into any) error {
	if !strings.HasPrefix(server, "https://") {
		return errors.New("its scheme is not https, so no credentials are sent to it")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+path, http.NoBody)
	if err != nil {
		return err
	}
	if config.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largest))
	switch err = errors.Join(err, response.Body.Close()); {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers %s", response.Status)
	}
	return json.Unmarshal(body, into)
}
