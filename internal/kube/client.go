package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Defaults of [Options].
const (
	DefaultNamespace   = "kurl"
	DefaultCallTimeout = 10 * time.Second
	// The API server protects itself (priority and fairness). This limit only protects against a defect in EKCO. It
	// is high enough to free all pods of a node at once.
	DefaultQPS   = 200
	DefaultBurst = 400
)

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// Namespace is EKCO's own namespace, which has the mirror; default "kurl".
	Namespace string
	// UserAgent identifies EKCO in the API server's audit log.
	UserAgent string
	// CallTimeout is the timeout of one call, including the time in the client's queue; default 10 s. For a watch
	// it is the timeout for opening the watch.
	CallTimeout time.Duration
	// QPS and Burst limit requests per second; default 200 and 400.
	QPS   float32
	Burst int
	// NodeLabels are labels of Nodes to read, in addition to the labels that EKCO always reads.
	NodeLabels []string
}

// Client is the [API] of a real API server. It is safe for concurrent use.
type Client struct {
	core        rest.Interface
	objects     *objects
	params      runtime.ParameterCodec
	namespace   string
	callTimeout time.Duration
	nodeLabels  []string
	serverClock *serverClock
}

var _ API = (*Client)(nil)

// NewClient returns a client for the API server of config. It does not change config and sends no request.
//
// The client supports only the types of core/v1. A clientset would register the types of every API group, and need
// several MiB of memory.
func NewClient(config *rest.Config, options Options) (*Client, error) {
	options = options.withDefaults()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the types of core/v1: %w", err)
	}
	config = options.ClientConfig(config, scheme)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	serverClock := &serverClock{}
	config.Wrap(serverClock.wrap)
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Kubernetes API at %s: %w", config.Host, err)
	}
	objects, err := newObjects(config, options)
	if err != nil {
		return nil, err
	}
	return &Client{
		core: core, objects: objects, params: runtime.NewParameterCodec(scheme),
		namespace: options.Namespace, callTimeout: options.CallTimeout, nodeLabels: options.NodeLabels, serverClock: serverClock,
	}, nil
}

// ClientConfig returns a copy of config for a client with these options. The client knows the types of the scheme and
// prefers protobuf. Without a scheme it knows only the types of the API server's errors and uses JSON.
func (o Options) ClientConfig(config *rest.Config, scheme *runtime.Scheme) *rest.Config {
	o, config = o.withDefaults(), rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if scheme == nil {
		scheme = runtime.NewScheme()
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS, config.Burst = o.QPS, o.Burst
	config.Timeout = 0 // it would end watches, and programs in pods; each call has its own timeout
	if o.UserAgent != "" {
		config.UserAgent = o.UserAgent
	}
	return config
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.QPS == 0 {
		o.QPS, o.Burst = DefaultQPS, DefaultBurst
	}
	return o
}

// Probe checks that the API server is ready. Every authenticated account has this permission. The error wraps
// ErrUnavailable unless ctx ended. One of the server's many readiness checks can fail for days while everything else
// works. So if the server reports that it is not ready, Probe also reads a Node, which comes from etcd. A refused
// request shows that the server works, so Probe then returns no error.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
	if known := Sentinel(err); errors.Is(known, ErrForbidden) || errors.Is(known, ErrNotFound) {
		return nil
	}
	if apierrors.IsInternalError(err) && c.reads(ctx) {
		return nil
	}
	return call{verb: "get", resource: "/readyz"}.fail(err)
}

// reads reports whether the API server can read Nodes.
func (c *Client) reads(ctx context.Context) bool {
	_, err := c.Nodes().ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

// ClusterUID returns the UID of namespace kube-system.
func (c *Client) ClusterUID(ctx context.Context) (string, error) {
	var namespace corev1.Namespace
	err := c.get(ctx, "namespaces", "", metav1.NamespaceSystem, &namespace)
	return string(namespace.UID), err
}

func (c *Client) get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Get().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource).Name(name).Do(ctx).Into(into)
	return call{"get", resource, fullName(namespace, name)}.fail(err)
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
