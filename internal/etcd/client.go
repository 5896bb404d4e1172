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
	// DefaultCallTimeout is well above the 7 s after which a member without a
	// leader may give up by itself and say so.
	DefaultCallTimeout   = 10 * time.Second
	DefaultHealthTimeout = 5 * time.Second
	DefaultTotalTimeout  = time.Minute

	// afterElection is how long a new leader is given before it is asked.
	afterElection = 100 * time.Millisecond
)

// Options of a [Client].
type Options struct {
	// CertificatesDir is kubeadm's, usually /etc/kubernetes/pki.
	CertificatesDir string
	// CallTimeout bounds one question to one endpoint, connecting included;
	// default 10 s.
	CallTimeout time.Duration
	// HealthTimeout is that of one endpoint in Health; default 5 s.
	HealthTimeout time.Duration
	// TotalTimeout bounds one call of the API; default 1 min.
	TotalTimeout time.Duration
	// ReadOnly makes every removal end with ErrReadOnly.
	ReadOnly bool
	// OnCall, if there is one, is told of each call of the API. It must not block.
	OnCall OnCall
}

// OnCall is told what a call took, and how it failed. kind is "members",
// "health" or "remove-member". Health does not fail as a whole.
type OnCall func(kind string, took time.Duration, err error)

// Dialer returns how to make a [Client] with these options.
func Dialer(options Options) Dial {
	return func(endpoints []string) (API, error) { return NewClient(endpoints, options) }
}

// Client is the [API] of a real cluster. It is safe for concurrent use.
//
// It keeps no connection and no goroutine between calls: each call reads the
// certificates anew, connects, asks and hangs up. It never uses a proxy. With
// GRPC_GO_LOG_SEVERITY_LEVEL=info in the environment gRPC says on standard
// error what it does.
type Client struct {
	endpoints []string
	options   Options
}

var _ API = (*Client)(nil)

// NewClient returns a client that asks Members and RemoveMember of those
// endpoints, each like "https://10.0.0.2:2379". It connects to nothing yet.
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

// told tells OnCall of a call that ends now.
func (o Options) told(kind string, began time.Time, err *error) {
	o.OnCall(kind, time.Since(began), *err)
}

// Members implements [API]. All endpoints are asked at once and the first good
// answer counts, so that a dead one costs nothing.
func (c *Client) Members(ctx context.Context) (members []Member, err error) {
	defer c.options.told("members", time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, c.options.TotalTimeout)
	defer cancel()
	found, err := c.reach(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the members of etcd: %w", orEnded(ctx, err))
	}
	found.hangUp()
	return found.members, nil
}

// RemoveMember implements [API]. The request goes once, to the endpoint that
// was the first to list the members, and only if the list has the id.
func (c *Client) RemoveMember(ctx context.Context, id ID) (err error) {
	if c.options.ReadOnly {
		return fmt.Errorf("remove etcd member %s: %w", id, ErrReadOnly)
	}
	defer c.options.told("remove-member", time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, c.options.TotalTimeout)
	defer cancel()
	found, err := c.reach(ctx)
	if err != nil {
		return fmt.Errorf("remove etcd member %s: %w", id, orEnded(ctx, err))
	}
	defer found.hangUp()
	if !slices.ContainsFunc(found.members, func(m Member) bool { return m.ID == id }) {
		return fmt.Errorf("remove etcd member %s: %w", id, ErrNoMember)
	}
	calling, done := context.WithTimeout(ctx, c.options.CallTimeout)
	defer done()
	if _, err := found.client.MemberRemove(calling, uint64(id)); err != nil {
		return fmt.Errorf("remove etcd member %s: %w", id, orEnded(ctx, answered(found.endpoint, err)))
	}
	return nil
}

// line is an open connection to an endpoint, and the members it listed.
type line struct {
	endpoint string
	client   *clientv3.Client
	members  []Member
	err      error
	panicked *parallel.PanicError
}

// hangUp closes the connection, if there is one. That it was cancelled meanwhile
// is no news.
func (l line) hangUp() {
	if l.client != nil {
		_ = l.client.Close()
	}
}

// reach asks all endpoints for the members and returns the first that answers.
// It returns only when it is done with all the others.
func (c *Client) reach(ctx context.Context) (line, error) {
	credentials, err := loadTLS(c.options.CertificatesDir)
	if err != nil {
		return line{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
	defer cancel()
	lines := make(chan line)
	for _, endpoint := range c.endpoints {
		go func() {
			var got line
			got.panicked = parallel.Catch(func() { got = ask(ctx, endpoint, credentials) })
			lines <- got
		}()
	}
	var panicked *parallel.PanicError
	var first line
	var failures []error
	for range c.endpoints {
		switch got := <-lines; {
		case got.panicked != nil:
			panicked = got.panicked
		case got.err != nil:
			failures = append(failures, got.err)
		case first.client == nil:
			first = got
			cancel()
		default:
			got.hangUp()
		}
	}
	if panicked != nil {
		first.hangUp()
		panicked.Raise()
	}
	if first.client == nil {
		return line{}, inOne(failures)
	}
	return first, nil
}

// ask connects to an endpoint and lists the members there.
func ask(ctx context.Context, endpoint string, credentials *tls.Config) line {
	client, err := connect(endpoint, credentials)
	if err != nil {
		return line{err: answered(endpoint, err)}
	}
	members, err := listInTime(ctx, client)
	if err != nil {
		err = explain(ctx, endpoint, credentials, err)
		if leaderless(ctx, client, endpoint) {
			err = rpctypes.ErrNoLeader
		}
		_ = client.Close()
		return line{err: answered(endpoint, err)}
	}
	return line{endpoint: endpoint, client: client, members: members}
}

// listInTime lists the members, and leaves some of the time to find out why that
// cannot be done: a member without quorum answers late or never, and only what it
// says of itself tells it from one that hangs.
func listInTime(ctx context.Context, client *clientv3.Client) ([]Member, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*4/5)
		defer cancel()
	}
	return listMembers(ctx, client)
}

// leaderless reports whether the endpoint answers and knows no leader. An
// election lasts a second or two, which it had before.
func leaderless(ctx context.Context, client *clientv3.Client, endpoint string) bool {
	status, err := client.Status(ctx, endpoint)
	return err == nil && status.Leader == 0
}

// connect returns a client of one endpoint that does not repeat requests, nor
// waits for an endpoint that refuses: EKCO repeats steps, and records it.
func connect(endpoint string, credentials *tls.Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:       []string{endpoint},
		TLS:             credentials,
		Logger:          zap.NewNop(),
		MaxUnaryRetries: 1,
		DialOptions:     []grpc.DialOption{grpc.WithNoProxy(), grpc.WithChainUnaryInterceptor(failFast)},
	})
}

// failFast undoes a default of etcd's client, which tries to connect until the
// request's time is over and then does not tell why it could not.
func failFast(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...)
}

// listMembers lists the members linearizably. Members before etcd 3.5 ignore
// that wish and answer from their own state; after a linearizable read that
// state is at least as new as the read.
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

// readLinearizably reads a key that need not exist, which takes a quorum. It
// reads again when the members elected a leader meanwhile, as they do in the
// first seconds after the loss of the old one.
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
