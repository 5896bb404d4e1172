package csr_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// server answers as an API server does, from a few objects.
type server struct {
	mu    sync.Mutex
	calls map[string]int
	// answers are by method and path.
	answers map[string]any
	sent    []byte
	// hold, when set, is waited for before a list of nodes is answered.
	hold chan struct{}
}

func newServer(t *testing.T) (*server, *csr.Client) {
	t.Helper()
	s := &server{calls: map[string]int{}, answers: map[string]any{
		"GET /api/v1/namespaces/default/services/kubernetes": corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00:96::1"}},
		},
		"GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config": corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			Data:     map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta3\ncontrolPlaneEndpoint: \"[fd00::100]:6443\"\nkind: ClusterConfiguration\n"},
		},
		"GET /api/v1/nodes": corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
			node("w1", false, "10.0.0.1", "w1"), node("w2", false, "10.0.0.1", "w2"), node("w3", true, "10.0.0.1", "w3"),
		}},
	}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	client, err := csr.NewClient(&rest.Config{Host: web.URL}, csr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func node(name string, lost bool, addresses ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Labels: map[string]string{kube.LabelControlPlane: ""}}}
	if lost {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	}
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.calls[call]++
	s.calls[call+"?"+r.URL.Query().Get("fieldSelector")]++
	answer, known := s.answers[call]
	if len(body) > 0 {
		s.sent = body
	}
	hold := s.hold
	s.mu.Unlock()
	if hold != nil && call == "GET /api/v1/nodes" {
		<-hold
	}
	w.Header().Set("Content-Type", "application/json")
	if code, is := answer.(int); is || !known {
		if !known {
			code = http.StatusNotFound
		}
		reason := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden, 409: metav1.StatusReasonConflict}[code]
		w.WriteHeader(code)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason}
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that went away is none of the test's business
}

func (s *server) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func asked(names ...string) journal.CSR { return csr.Parse(csrsim.Asks("csr-1", "w1", names...)) }

func TestWhatIsAroundARequestIsWhatConcernsIt(t *testing.T) {
	_, client := newServer(t)
	around, err := client.Around(t.Context(), asked("w1", "10.0.0.1"), asked("fd00:96::1", "fd00:0::100", "10.96.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := around[0], around[1]
	if first.Node == nil || !first.Node.Primary || len(first.Node.Addresses) != 2 || len(first.Cluster) != 0 {
		t.Errorf("around the first is %+v", first)
	}
	if len(first.Others) != 1 || first.Others[0] != (journal.CSRClaim{Name: "10.0.0.1", By: "node w2"}) {
		t.Errorf("others claim %+v; w3 is lost", first.Others)
	}
	endpoints := 0
	for _, claim := range second.Cluster {
		if claim.Endpoint {
			endpoints++
		}
	}
	if len(second.Cluster) < 3 || endpoints != 1 || len(second.Others) != 0 {
		t.Errorf("around the second is %+v", second)
	}
}

func TestWhatKubeadmKnowsOfTheClusterIsNoMachines(t *testing.T) {
	s, client := newServer(t)
	set := func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers["GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config"] = corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"ClusterConfiguration": text},
		}
	}
	set("apiServer:\n  certSANs: [api.example.com]\nnetworking:\n  serviceSubnet: 10.96.0.0/22,fd00:96::/112\n  podSubnet: 10.32.0.0/20\n")
	around, err := client.Around(t.Context(), asked("API.example.com", "10.96.3.9", "fd00:96::9", "10.32.0.7", "10.97.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, claim := range around[0].Cluster {
		whose, _, _ := strings.Cut(claim.By, " (")
		got = append(got, fmt.Sprintf("%s %s %t", claim.Name, whose, claim.Primaries))
	}
	slices.Sort(got)
	if want := []string{
		"10.32.0.7 an address of pods false", "10.96.3.9 an address of Services false",
		"api.example.com a name of the API servers true", "fd00:96::9 an address of Services false",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	set("networking:\n  serviceSubnet: 10.96.0.0\n")
	if around, err = client.Around(t.Context(), asked("w1")); err != nil || !strings.Contains(around[0].Unknown, "subnet") {
		t.Errorf("%v, %+v", err, around)
	}
}

func TestWhatMayBeReadAtTheNextLookRefusesNobody(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/nodes"] = http.StatusGone // a list that took too long
	if around, err := client.Around(t.Context(), asked("w1")); err == nil {
		t.Errorf("%+v", around)
	}
}

func TestWhatANodeClaimsBeyondWhatCountsForItIsClaimedAllTheSame(t *testing.T) {
	s, client := newServer(t)
	many := make([]string, 0, 70)
	for i := range 69 {
		many = append(many, fmt.Sprintf("10.1.0.%d", i))
	}
	s.answers["GET /api/v1/nodes"] = corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
		node("w1", false, "10.0.0.1", "w1"), node("w2", false, append(many, "10.0.0.1")...),
	}}
	around, err := client.Around(t.Context(), asked("w1", "10.0.0.1"))
	if err != nil || len(around[0].Others) != 1 {
		t.Errorf("%v, others claim %+v", err, around)
	}
}

func TestWhatMustNotBeReadIsNamedAndAnOutageIsAnError(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/namespaces/default/services/kubernetes"] = http.StatusForbidden
	around, err := client.Around(t.Context(), asked("w1"))
	if err != nil || !strings.Contains(around[0].Unknown, "lacks the permission to get services") {
		t.Errorf("%v, %+v", err, around)
	}
	s.answers["GET /api/v1/namespaces/default/services/kubernetes"] = http.StatusServiceUnavailable
	if _, err := client.Around(t.Context(), asked("w1")); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

func TestAClusterWithoutKubeadmHasNoEndpoint(t *testing.T) {
	s, client := newServer(t)
	delete(s.answers, "GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config")
	around, err := client.Around(t.Context(), asked("fd00::100"))
	if err != nil || around[0].Unknown != "" || len(around[0].Cluster) != 0 {
		t.Errorf("%v, %+v", err, around)
	}
}

func TestThoseWhoAskTogetherShareALook(t *testing.T) {
	s, client := newServer(t)
	s.hold = make(chan struct{})
	const many = 100
	var looking sync.WaitGroup
	for range many {
		looking.Go(func() {
			if around, err := client.Around(t.Context(), asked("10.0.0.1")); err != nil || around[0].Node == nil {
				t.Errorf("%v, %+v", err, around)
			}
		})
	}
	close(s.hold)
	looking.Wait()
	if lists := s.count("GET /api/v1/nodes"); lists > many/2 {
		t.Errorf("%d callers listed the nodes %d times", many, lists)
	}
}

func TestARequestIsReadByAListAndApprovedAsItWasRead(t *testing.T) {
	s, client := newServer(t)
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	object := csrsim.Asks("csr-1", "w1", "w1")
	object.ResourceVersion, object.Labels = "7", map[string]string{"a": "b"}
	s.answers["GET "+path] = certificatesv1.CertificateSigningRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}, Items: []certificatesv1.CertificateSigningRequest{*object},
	}
	read, err := client.Read(t.Context(), "csr-1")
	if err != nil || read.Decision != csr.Pending || s.count("GET "+path+"?metadata.name=csr-1") != 1 {
		t.Fatalf("%v, %+v", err, read)
	}
	if _, err := client.Read(t.Context(), "csr-2"); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("error is %v", err)
	}
	s.answers["PUT "+path+"/csr-1/approval"] = http.StatusConflict
	if err := client.Approve(t.Context(), read, "checked"); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("error is %v", err)
	}
	for _, part := range []string{"ekcoApprove", "checked", "uid-csr-1"} {
		if !bytes.Contains(s.sent, []byte(part)) {
			t.Errorf("what was sent lacks %q", part)
		}
	}
}

func TestHostileRequestsAreCutAsTheyArrive(t *testing.T) {
	s, client := newServer(t)
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	huge, done := csrsim.Asks("huge", "w1", "w1"), csrsim.Asks("done", "w1", "w1")
	huge.Spec.Request = bytes.Repeat([]byte("a"), 1<<20)
	huge.Spec.Username = strings.Repeat("u", 1<<16)
	huge.Annotations = map[string]string{"a": strings.Repeat("x", 1<<16)}
	for i := range 1000 {
		huge.Spec.Usages = append(huge.Spec.Usages, certificatesv1.KeyUsage(fmt.Sprint(i)))
		huge.Spec.Groups = append(huge.Spec.Groups, fmt.Sprint(i))
	}
	done.Status.Certificate = bytes.Repeat([]byte("c"), 1<<16)
	s.answers["GET "+path] = certificatesv1.CertificateSigningRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"},
		Items:    []certificatesv1.CertificateSigningRequest{*huge, *done},
	}
	page, err := client.Requests().ListWithContext(t.Context(), metav1.ListOptions{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	if s.count("GET "+path+"?spec.signerName=kubernetes.io/kubelet-serving") != 1 {
		t.Errorf("the requests of others are listed: %v", s.calls)
	}
	list := page.(*certificatesv1.CertificateSigningRequestList)
	encoded, err := json.Marshal(list)
	if err != nil || len(encoded) > 64<<10 {
		t.Errorf("%d bytes are left, %v", len(encoded), err)
	}
	if unfit := csr.Of(&list.Items[0]).Asked.Unfit; !strings.Contains(unfit, "more than 8 usages") {
		t.Errorf("the huge one is unfit because %q", unfit)
	}
	if csr.Of(&list.Items[1]).Decision != csr.Approved {
		t.Error("one with a certificate is not approved any more")
	}
}
