package csr

import (
	"context"
	"fmt"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/replicatedhq/ekco/internal/kube"
)

// listPage is the maximum number of requests in one page of a list. Each can have a megabyte, and any client that
// may create requests can send a thousand of those.
const listPage = 32

// Requests implements [API]. Its objects hold only what [Of] needs, whether they are
// listed or watched.
func (c *Client) Requests() kube.Source { return &source{c} }

type source struct{ client *Client }

// ofSigner selects the requests to the signer.
var ofSigner = fields.OneTermEqualSelector("spec.signerName", Signer).String()

// ListWithContext reads one page.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, s.client.callTimeout)
	defer cancel()
	options.FieldSelector = ofSigner
	if options.Limit == 0 || options.Limit > listPage {
		options.Limit = listPage
	}
	var list certificatesv1.CertificateSigningRequestList
	err := s.client.certificates.Get().Resource(resource).VersionedParams(&options, s.client.params).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, withSentinel(err, "list", resource))
	}
	for i := range list.Items {
		slim(&list.Items[i])
	}
	return &list, nil
}

// WatchWithContext opens a watch; see [kube.OpenWatch].
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector, options.Watch = ofSigner, true
	opened, err := kube.OpenWatch(ctx, s.client.callTimeout, s.client.certificates.Get().Resource(resource).VersionedParams(&options, s.client.params).Watch)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, withSentinel(err, "watch", resource))
	}
	return newSlimming(opened), nil
}

// slimming is a watch that reduces its requests, so that whole requests are not kept in memory.
type slimming struct {
	from watch.Interface
	to   chan watch.Event
	done chan struct{}
	stop func()
}

func newSlimming(from watch.Interface) *slimming {
	w := &slimming{from: from, to: make(chan watch.Event), done: make(chan struct{})}
	w.stop = sync.OnceFunc(func() {
		close(w.done)
		from.Stop()
	})
	go w.pass()
	return w
}

func (w *slimming) ResultChan() <-chan watch.Event { return w.to }

func (w *slimming) Stop() { w.stop() }

func (w *slimming) pass() {
	defer close(w.to)
	for event := range w.from.ResultChan() {
		if request, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok {
			slim(request)
		}
		select {
		case w.to <- event:
		case <-w.done:
			return
		}
	}
}

// slim removes what [Of] does not need, and shortens values that exceed their limits to one more than the limit, so
// that [Parse] still refuses them.
func slim(object *certificatesv1.CertificateSigningRequest) {
	object.ObjectMeta = metav1.ObjectMeta{
		Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		CreationTimestamp: object.CreationTimestamp, Annotations: bookmark(object.Annotations),
	}
	spec, groups := &object.Spec, []string(nil)
	if slices.Contains(spec.Groups, nodesGroup) {
		groups = []string{nodesGroup}
	}
	object.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: cut(spec.Request, maxRequest+1), SignerName: spec.SignerName,
		Usages: cut(spec.Usages, maxUsages+1), Username: string(cut([]byte(spec.Username), maxText+1)), Groups: groups,
	}
	if decisionOf(object) != Pending {
		object.Spec.Request, object.Spec.Usages = nil, nil
		object.Status.Certificate = cut(object.Status.Certificate, 1)
	}
	for i := range object.Status.Conditions {
		object.Status.Conditions[i] = certificatesv1.CertificateSigningRequestCondition{Type: object.Status.Conditions[i].Type}
	}
}

// cut copies the first elements, so that the memory of the rest can be freed.
func cut[T any](all []T, most int) []T { return slices.Clone(all[:min(len(all), most)]) }

func bookmark(annotations map[string]string) map[string]string {
	if value, ok := annotations[metav1.InitialEventsAnnotationKey]; ok {
		return map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	return nil
}
