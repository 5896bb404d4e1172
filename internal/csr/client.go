package csr

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
)

const resource = "certificatesigningrequests"

// Client is the [API] of a real API server. It is safe for concurrent use.
type Client struct {
	certificates, core rest.Interface
	// approvals sends only approvals. In one queue with reads, an approval could wait until its decision is too old.
	approvals    rest.Interface
	params       runtime.ParameterCodec
	callTimeout  time.Duration
	surroundings surroundings
}

var _ API = (*Client)(nil)

// NewClient returns a client for the API server of config, which kube.Connect has returned. It does not change config,
// and sends no request.
func NewClient(config *rest.Config, options kube.Options) (*Client, error) {
	if options.CallTimeout == 0 {
		options.CallTimeout = kube.DefaultCallTimeout
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), certificatesv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the types of certificates: %w", err)
	}
	config = options.ClientConfig(config, scheme)
	c := &Client{params: runtime.NewParameterCodec(scheme), callTimeout: options.CallTimeout}
	var err, approvalsErr, coreErr error
	c.certificates, err = clientFor(config, "/apis", certificatesv1.SchemeGroupVersion)
	c.approvals, approvalsErr = clientFor(config, "/apis", certificatesv1.SchemeGroupVersion)
	c.core, coreErr = clientFor(config, "/api", corev1.SchemeGroupVersion)
	if err := errors.Join(err, approvalsErr, coreErr); err != nil {
		return nil, fmt.Errorf("make a client for certificates at %s: %w", config.Host, err)
	}
	c.surroundings.init()
	return c, nil
}

func clientFor(config *rest.Config, path string, version schema.GroupVersion) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = path, &version
	return rest.RESTClientFor(config)
}

// Read implements [API]. It lists, since EKCO may not get a single request.
func (c *Client) Read(ctx context.Context, name string) (Request, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	var list certificatesv1.CertificateSigningRequestList
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	if err := c.certificates.Get().Resource(resource).VersionedParams(&options, c.params).Do(ctx).Into(&list); err != nil {
		return Request{}, fmt.Errorf("read certificate signing request %s: %w", name, withSentinel(err, "list", resource))
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return Of(&list.Items[i]), nil
		}
	}
	return Request{}, fmt.Errorf("read certificate signing request %s: %w", name, kube.ErrNotFound)
}

// Approve implements [API].
func (c *Client) Approve(ctx context.Context, request Request, message string) error {
	if request.object == nil {
		return fmt.Errorf("approve certificate signing request %s: its object was not kept after the read", request.Name)
	}
	approved := request.object.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: ReasonApproved, Message: message, LastUpdateTime: metav1.Now(),
	})
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.approvals.Put().Resource(resource).Name(request.Name).SubResource("approval").Body(approved).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("approve certificate signing request %s: %w", request.Name, withSentinel(err, "update", resource+"/approval"))
	}
	return nil
}

// get reads an object. Its error wraps kube's sentinels.
func (c *Client) get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).Do(ctx).Into(into)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", resource, name, withSentinel(err, "get", resource))
	}
	return nil
}

// withSentinel adds the sentinel of an error, and the permission that is missing.
func withSentinel(err error, verb, resource string) error {
	if sentinel := kube.Sentinel(err); sentinel != nil && !errors.Is(err, sentinel) {
		err = fmt.Errorf("%w: %w", sentinel, err)
	}
	return kube.NamePermission(err, verb, resource)
}
