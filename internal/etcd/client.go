package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Defaults of [Options].
const (
	// DefaultCallTimeout is longer than the 7 s that a member without a leader may take to report an error.
	DefaultCallTimeout   = 10 * time.Second
	DefaultHealthTimeout = 5 * time.Second
	DefaultTotalTimeout  = time.Minute

	// afterElection is the delay before a request to a new leader.
	afterElection = 100 * time.Millisecond
)

// Options of a [Client].
type Options struct {
	// CertificatesDir is kubeadm's directory, usually /etc/kubernetes/pki.
	CertificatesDir string
	// CallTimeout is the timeout of one request to one endpoint, including the connection; default 10 s.
	CallTimeout time.Duration
	// HealthTimeout is the timeout of one endpoint in Health; default 5 s.
	HealthTimeout time.Duration
	// TotalTimeout is the timeout of one call of the API; default 1 min.
	TotalTimeout time.Duration
	// ReadOnly refuses every removal with ErrReadOnly.
	ReadOnly bool
	// OnCall, if set, is called for each call of the API. It must not block.
	OnCall OnCall
}

// OnCall receives the duration and the error of a call. kind is "members", "health" or "remove-member". The error of
// "health" is always nil: each endpoint has its own result.
type OnCall func(kind string, took time.Duration, err error)

// Dialer returns a function that creates a [Client] with these options.
func Dialer(options Options) Dial {
	return func(endpoints []string) (API, error) { return NewClient(endpoints, options) }
}

// Client is the [API] of a real cluster. It is safe for concurrent use.
//
// It keeps no connection and no goroutine between calls: each call reads the certificates again, connects, sends its
// requests and disconnects. It never uses a proxy. With GRPC_GO_LOG_SEVERITY_LEVEL=info in the environment, gRPC logs to
// standard error.
type Client struct {
	endpoints []string
	options   Options
}

var _ API = (*Client)(nil)

// NewClient returns a client whose Members and RemoveMember use these endpoints, each like
// "https://10.0.0.2:2379". It does not connect yet.
func NewClient(endpoints []string, options Options) (*Client, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoint is known; at least one remaining primary is needed")
	}
	for _, endpoint := range endpoints {
		parsed, err := url.Parse(endpoint)
		if err != nil {
			return nil, fmt.Errorf("connect to etcd: %w", err)
		}
		if parsed.Scheme != "https" || parsed.Port() == "" || parsed.Hostname() == "" {
			return nil, fmt.Errorf("connect to etcd: endpoint %q is not of the form https://HOST:PORT", endpoint)
		}
	}
	return &Client{endpoints: slices.Clone(endpoints), options: options.withDefaults()}, nil
}

func (o Options) withDefaults() Options {
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.HealthTimeout == 0 {
		o.HealthTimeout = DefaultHealthTimeout
	}
	if o.TotalTimeout == 0 {
		o.TotalTimeout = DefaultTotalTimeout
	}
	if o.OnCall == nil {
		o.OnCall = func(string, time.Duration, error) {}
	}
	return o
}

// report calls OnCall for a call that ends now.
func (o Options) report(kind string, began time.Time, err *error) {
	o.OnCall(kind, time.Since(began), *err)
}

// Members implements [API]. It asks all endpoints in parallel and returns the first valid answer, so that a dead endpoint
// causes no delay.
func (c *Client) Members(ctx context.Context) (members []Member, err error) {
	defer c.options.report("members", time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, c.options.TotalTimeout)
	defer cancel()
	found, err := c.connectFirst(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the members of etcd: %w", withContextError(ctx, err))
	}
	found.close()
	return found.members, nil
}

// RemoveMember implements [API]. It lists the members, and sends the request once, to the endpoint that answered first. It
// sends no request if the list does not have the id.
func (c *Client) RemoveMember(ctx context.Context, id ID) (err error) {
	if c.options.ReadOnly {
		return fmt.Errorf("remove etcd member %s: %w", id, ErrReadOnly)
	}
	defer c.options.report("remove-member", time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, c.options.TotalTimeout)
	defer cancel()
	found, err := c.connectFirst(ctx)
	if err != nil {
		return fmt.Errorf("remove etcd member %s: %w", id, withContextError(ctx, err))
	}
	defer found.close()
	if !slices.ContainsFunc(found.members, func(m Member) bool { return m.ID == id }) {
		return fmt.Errorf("remove etcd member %s: %w", id, ErrNoMember)
	}
	calling, done := context.WithTimeout(ctx, c.options.CallTimeout)
	defer done()
	if _, err := found.client.MemberRemove(calling, uint64(id)); err != nil {
		return fmt.Errorf("remove etcd member %s: %w", id, withContextError(ctx, endpointError(found.endpoint, err)))
	}
	return nil
}

// connection is an open connection to an endpoint, and the members that it listed.
type connection struct {
	endpoint string
	client   *clientv3.Client
	members  []Member
	err      error
	panicked *parallel.PanicError
}

// close closes the connection, if any. It ignores the error, because the connection may be cancelled.
func (l connection) close() {
	if l.client != nil {
		_ = l.client.Close()
	}
}

// connectFirst asks all endpoints for the members and returns the connection to the first endpoint that answers. It waits
// for the end of all other requests.
func (c *Client) connectFirst(ctx context.Context) (connection, error) {
	credentials, err := loadTLS(c.options.CertificatesDir)
	if err != nil {
		return connection{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
	defer cancel()
	connections := make(chan connection)
	for _, endpoint := range c.endpoints {
		go func() {
			var got connection
			got.panicked = parallel.Catch(func() { got = ask(ctx, endpoint, credentials) })
			connections <- got
		}()
	}
	var panicked *parallel.PanicError
	var first connection
	var failures []error
	for range c.endpoints {
		switch got := <-connections; {
		case got.panicked != nil:
			panicked = got.panicked
		case got.err != nil:
			failures = append(failures, got.err)
		case first.client == nil:
			first = got
			cancel()
		default:
			got.close()
		}
	}
	if panicked != nil {
		first.close()
		panicked.Raise()
	}
	if first.client == nil {
		return connection{}, joined(failures)
	}
	return first, nil
}

// ask connects to an endpoint and lists the members.
func ask(ctx context.Context, endpoint string, credentials *tls.Config) connection {
	client, err := connect(endpoint, credentials)
	if err != nil {
		return connection{err: endpointError(endpoint, err)}
	}
	members, err := listInTime(ctx, client)
	if err != nil {
		err = explain(ctx, endpoint, credentials, err)
		if isLeaderless(ctx, client, endpoint) {
			err = rpctypes.ErrNoLeader
		}
		_ = client.Close()
		return connection{err: endpointError(endpoint, err)}
	}
	return connection{endpoint: endpoint, client: client, members: members}
}

// listInTime lists the members, and leaves time to find the cause of a failure: a member without quorum answers late or
// never, and only its status distinguishes it from a member that hangs.
func listInTime(ctx context.Context, client *clientv3.Client) ([]Member, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*4/5)
		defer cancel()
	}
	return listMembers(ctx, client)
}

// isLeaderless reports whether the endpoint answers and knows no leader. The caller has already waited longer than an
// election takes (a second or two).
func isLeaderless(ctx context.Context, client *clientv3.Client, endpoint string) bool {
	status, err := client.Status(ctx, endpoint)
	return err == nil && status.Leader == 0
}

// connect returns a client of one endpoint. The client does not repeat requests, and does not wait if the endpoint refuses
// the connection, because EKCO repeats steps itself and records each repetition.
func connect(endpoint string, credentials *tls.Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:       []string{endpoint},
		TLS:             credentials,
		Logger:          zap.NewNop(),
		MaxUnaryRetries: 1,
		DialOptions:     []grpc.DialOption{grpc.WithNoProxy(), grpc.WithChainUnaryInterceptor(failFast)},
	})
}

// failFast makes a request fail when there is no connection. By default etcd's client tries to connect until the
// request's timeout, and then does not return the reason of the failure.
func failFast(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...)
}

// listMembers lists the members linearizably. etcd before 3.5 ignores this option and answers with the member's own
// state. So listMembers makes a linearizable read first: then the member's state is at least as new as the read.
func listMembers(ctx context.Context, client *clientv3.Client) ([]Member, error) {
	if err := readLinearizably(ctx, client); err != nil {
		return nil, err
	}
	response, err := client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(response.Members))
	for _, m := range response.Members {
		members = append(members, Member{
			ID: ID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner,
		})
	}
	return members, nil
}

// readLinearizably reads a key, which may not exist, because such a read needs a quorum. It repeats the read if the members
// have just elected a leader, as in the first seconds after the loss of the old leader.
func readLinearizably(ctx context.Context, client *clientv3.Client) error {
	for {
		_, err := client.Get(ctx, "health", clientv3.WithCountOnly())
		if !errors.Is(err, rpctypes.ErrLeaderChanged) {
			return err
		}
		select {
		case <-time.After(afterElection):
		case <-ctx.Done():
			return err
		}
	}
}
