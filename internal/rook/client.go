package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
)

// DefaultCallTimeout is the default timeout of one request.
const DefaultCallTimeout = 10 * time.Second

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// UserAgent identifies EKCO in the API server's audit log.
	UserAgent string
	// CallTimeout is the timeout of one request, including the time in the client's queue; default 10 s. An exec has
	// only the timeout of its context.
	CallTimeout time.Duration
}

// Client is the [API] of Rook in a real cluster.
type Client struct {
	rest        rest.Interface
	exec        *podexec.Client
	callTimeout time.Duration
}

var _ API = (*Client)(nil)

// NewClient returns a client for the API server of config. It does not change config and sends no request.
func NewClient(config *rest.Config, options Options) (*Client, error) {
	if options.CallTimeout == 0 {
		options.CallTimeout = DefaultCallTimeout
	}
	// The scheme needs only the types of the API server's errors.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS, config.Burst = kube.DefaultQPS, kube.DefaultBurst
	config.Timeout = 0 // each call has its own timeout
	if options.UserAgent != "" {
		config.UserAgent = options.UserAgent
	}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Rook at %s: %w", config.Host, err)
	}
	exec, err := podexec.New(config, options.UserAgent)
	return &Client{rest: client, exec: exec, callTimeout: options.CallTimeout}, err
}

// group is the API group of Rook's own objects.
const group = "ceph.rook.io"

// resource is a kind of object in Rook's namespace.
type resource struct {
	// api is "api/v1" or "apis/GROUP/VERSION".
	api, plural string
}

var (
	pods         = resource{"api/v1", "pods"}
	deployments  = resource{"apis/apps/v1", "deployments"}
	cephClusters = resource{"apis/" + group + "/v1", "cephclusters"}
)

func (r resource) path(name ...string) []string {
	return append([]string{r.api, "namespaces", Namespace, r.plural}, name...)
}

// get reads an object, or a list of objects if the name is empty.
func (c *Client) get(ctx context.Context, of resource, name, labels string, into any) error {
	this := call{"get", of.plural, name}
	path := of.path(name)
	if name == "" {
		this.verb, path = "list", of.path()
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	request := c.rest.Get().AbsPath(path...)
	if labels != "" {
		request = request.Param("labelSelector", labels)
	}
	answer, err := request.Do(ctx).Raw()
	if err != nil {
		return this.fail(err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s: read the answer: %w", this, err)
	}
	return nil
}
