package ring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/actions"
	actioncsr "github.com/replicatedhq/ekco/actions/csr"
	"github.com/replicatedhq/ekco/fsm"
	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observercsr "github.com/replicatedhq/ekco/observers/csr"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// office is a house whose kubelets ask for serving certificates. The product's client
// speaks to it as to an API server.
type office struct {
	*estate
	client *csr.Client

	desk     sync.Mutex
	requests map[string]*certificatesv1.CertificateSigningRequest
	// approved is when each was, calls are how often what was asked of the API server, and
	// answers what it says instead, by "method last-part-of-the-path".
	approved map[string]time.Time
	calls    map[string]int
	answers  map[string]int
}

// inAnOffice runs a test with the capability as the product has it, under that setting.
func inAnOffice(t *testing.T, approve bool, test func(*office)) {
	inAHouse(t, func(h *house) {
		o := &office{
			estate: &estate{house: h, objects: kubesim.NewObjects(), kind: fsmcsr.Approve}, requests: map[string]*certificatesv1.CertificateSigningRequest{},
			approved: map[string]time.Time{}, calls: map[string]int{}, answers: map[string]int{},
		}
		client, err := csr.NewClient(&rest.Config{Host: "http://simulated", Transport: o}, kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.client = client
		o.objects.BeforeEffect = o.mustBeRecorded
		o.employ(approve)
		test(o)
	})
}

// employ has rings approve from now on, or not.
func (o *office) employ(approve bool) {
	capability, neighbours := o.approving(approve)
	o.also = neighbours
	o.policy.enginePolicy = capability.policyIn(o.policy.enginePolicy)
	o.list = func() Capabilities { return Capabilities{o.nodes(), capability} }
}

// approving is the capability as the product has it.
func (o *office) approving(approve bool) (Capability, *observercsr.Neighbours) {
	neighbours := observercsr.NewNeighbours()
	return Capability{
		Fsm: fsmcsr.Capability(), Words: fsmcsr.Words, Policy: fsmcsr.Policy{Approve: approve},
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actioncsr.New(o.client, func(asked journal.CSR, around journal.CSRAround) (key, reason string) {
				verdict := fsmcsr.Judge(asked, around)
				return verdict.Key, verdict.Reason
			})}
		},
		Sources: func(s *fsm.State) []observers.Source {
			options := observercsr.Options{Requests: o.server.Requests(), Around: o.client.Around, Neighbours: neighbours}
			for subject, facts := range fsmcsr.Open(s) {
				options.Known = append(options.Known, observercsr.Known{Subject: subject, Facts: facts})
			}
			if !approve {
				options.Off = "auto_approve_kubelet_csrs is off"
			}
			return []observers.Source{observercsr.New(options)}
		},
	}, neighbours
}

// hire adds nodes with addresses of their own, and returns the address of the last.
func (o *office) hire(names ...string) (ip string) {
	for _, name := range names {
		sum := 0
		for _, c := range name {
			sum = sum*31 + int(c)
		}
		ip = fmt.Sprintf("10.%d.%d.%d", 100+sum>>16&63, sum>>8&255, sum&255)
		o.server.Put(kubelet(name, ip))
	}
	return ip
}

func kubelet(name string, ips ...string) *corev1.Node {
	return observerstest.Node(name, "uid-"+name, func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}
		for _, ip := range ips {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
	})
}

// ask has the kubelet of a node ask for names, in a request of that name.
func (o *office) ask(request, node string, names ...string) {
	object := csrsim.Asks(request, node, names...)
	o.desk.Lock()
	o.requests[request] = object
	o.desk.Unlock()
	o.server.Put(object)
}

// withdraw deletes a request.
func (o *office) withdraw(request string) {
	o.desk.Lock()
	object := o.requests[request]
	delete(o.requests, request)
	o.desk.Unlock()
	o.server.Remove(object)
}

// answer has the API server answer so, 0 for as it should.
func (o *office) answer(call string, code int) {
	o.desk.Lock()
	defer o.desk.Unlock()
	o.answers[call] = code
}

func (o *office) isApproved(request string) bool {
	o.desk.Lock()
	defer o.desk.Unlock()
	_, is := o.approved[request]
	return is
}

func (o *office) called(call string) int {
	o.desk.Lock()
	defer o.desk.Unlock()
	return o.calls[call]
}

func (o *office) stateOf(request string) journal.State {
	o.t.Helper()
	if t := o.state().Things["uid-"+request]; t != nil {
		return t.State
	}
	return "unknown"
}

// RoundTrip implements http.RoundTripper.
func (o *office) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	call := r.Method + " " + parts[len(parts)-1]
	if selected := r.URL.Query().Get("fieldSelector"); selected != "" {
		call = r.Method + " " + strings.TrimPrefix(selected, "metadata.name=")
	} else if r.Method == http.MethodPut {
		call = r.Method + " " + parts[len(parts)-2]
	}
	o.desk.Lock()
	o.calls[call]++
	o.calls[r.Method]++
	code := o.answers[call]
	o.desk.Unlock()
	if code != 0 {
		return reply(r, code, nil), nil
	}
	switch {
	case r.Method == http.MethodPut:
		return o.put(r, parts[len(parts)-2])
	case call == "GET nodes":
		list, err := o.server.Nodes().ListWithContext(r.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		list.(*corev1.NodeList).TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}
		return reply(r, http.StatusOK, list), nil
	case call == "GET services":
		return reply(r, http.StatusOK, &corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}}), nil
	case call == "GET kubernetes":
		return reply(r, http.StatusOK, &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"},
		}), nil
	case strings.HasPrefix(call, "GET csr-"):
		return reply(r, http.StatusOK, o.one(strings.TrimPrefix(call, "GET "))), nil
	}
	return reply(r, http.StatusNotFound, nil), nil
}

// one is the list of requests of that name.
func (o *office) one(name string) *certificatesv1.CertificateSigningRequestList {
	list := &certificatesv1.CertificateSigningRequestList{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}}
	o.desk.Lock()
	defer o.desk.Unlock()
	if object := o.requests[name]; object != nil {
		list.Items = append(list.Items, *object)
	}
	return list
}

var certificates = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// put takes an approval.
func (o *office) put(r *http.Request, name string) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	object, _, err := certificates.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	sent := object.(*certificatesv1.CertificateSigningRequest)
	_, err = o.around(func() (json.RawMessage, error) {
		return nil, sim.Do(&o.objects.Controls, "update", "approve "+name, func() (bool, error) {
			o.desk.Lock()
			defer o.desk.Unlock()
			live := o.requests[name]
			if live == nil || live.UID != sent.UID || len(live.Status.Conditions) > 0 {
				return false, kube.ErrConflict
			}
			o.requests[name], o.approved[name] = sent, time.Now()
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	o.server.Put(sent)
	return reply(r, http.StatusOK, sent), nil
}

func reply(r *http.Request, code int, object any) *http.Response {
	if object == nil {
		reason := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden}[code]
		object = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason}
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(encoded)),
	}
}

// wrote counts the events about requests since one, by type.
func (o *office) wrote(after uint64) (total int, by map[journal.Type]int) {
	by = map[journal.Type]int{}
	for _, event := range o.events(journal.Query{After: after}) {
		if event.Subject.Kind == fsmcsr.Kind {
			by[event.Type]++
			total++
		}
	}
	return total, by
}

// open are the requests whose approvals are open.
func (o *office) open() (names []string) {
	for _, record := range o.state().OpenActions() {
		names = append(names, record.Subject.Name)
	}
	slices.Sort(names)
	return names
}
