package csr_test

import (
	"bytes"
	"context"
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
	"testing/synctest"
	"time"

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
	// query is that of the last call.
	query string
	// hold, when set, is waited for before a list of nodes is answered.
	hold chan struct{}
}

// answers are those of a small cluster.
func answers() map[string]any {
	return map[string]any{
		"GET /api/v1/namespaces/default/services/kubernetes": corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00:96::1"}},
		},
		"GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config": corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			Data:     map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta3\ncontrolPlaneEndpoint: \"[fd00::100]:6443\"\nkind: ClusterConfiguration\n"},
		},
		"GET /api/v1/services": corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}},
		"GET /api/v1/nodes": corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
			primary(node("w1", false, "10.0.0.1", "w1"), kube.LabelControlPlane), node("w2", false, "10.0.0.1", "w2"), node("w3", true, "10.0.0.1", "w3"),
		}},
	}
}

func newServer(t *testing.T) (*server, *csr.Client) {
	t.Helper()
	s := &server{calls: map[string]int{}, answers: answers()}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	client, err := csr.NewClient(&rest.Config{Host: web.URL}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func node(name string, lost bool, addresses ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
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
	if next := r.URL.Query().Get("continue"); next != "" {
		call += "?continue=" + next
	}
	s.query = r.URL.RawQuery
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
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason, Message: `it says "no"`}
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that went away is none of the test's business
}

// services sets the server's Services, as NAMESPACE/NAME.
func (s *server) services(names ...string) {
	list := corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}}
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		list.Items = append(list.Items, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers["GET /api/v1/services"] = list
}

// primary makes it a node of the control plane, by one of the labels that say so.
func primary(node corev1.Node, label string) corev1.Node {
	node.Labels = map[string]string{label: ""}
	return node
}

// list makes a list of Nodes, which the server has from now on.
func (s *server) list(nodes ...corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers["GET /api/v1/nodes"] = corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: nodes}
}

func (s *server) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func asked(names ...string) journal.CSR { return csr.Parse(csrsim.Asks("csr-1", "w1", names...)) }

func TestWhatIsAroundARequestIsWhatConcernsIt(t *testing.T) {
	_, client := newServer(t)
	around, err := client.Around(t.Context(), time.Now(), asked("w1", "10.0.0.1"), asked("fd00:96::1", "fd00:0::100", "10.96.0.1"))
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

// TestALostPrimaryKeepsItsAddressesUntilItsNodeIsDeleted: who cuts one off the network
// does not get its identity by that.
func TestALostPrimaryKeepsItsAddressesUntilItsNodeIsDeleted(t *testing.T) {
	s, client := newServer(t)
	notReady := node("p1", false, "10.0.0.1", "p1")
	notReady.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
	lost := node("p1", true, "10.0.0.1", "p1")
	rogue := node("w1", false, "10.0.0.1", "w1")
	const lostBy = "node p1 (a lost primary, whose addresses are its own until its Node is deleted)"
	for name, test := range map[string]struct {
		nodes []corev1.Node
		by    string
	}{
		"control-plane":               {[]corev1.Node{rogue, primary(lost, kube.LabelControlPlane)}, lostBy},
		"master":                      {[]corev1.Node{rogue, primary(lost, kube.LabelMaster)}, lostBy},
		"not ready, and not lost yet": {[]corev1.Node{rogue, primary(notReady, kube.LabelControlPlane)}, "node p1"},
		"a worker that is not ready":  {[]corev1.Node{rogue, notReady}, "node p1"},
		"a lost worker":               {[]corev1.Node{rogue, lost}, ""},
		"deleted":                     {[]corev1.Node{rogue}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.list(test.nodes...)
			around, err := client.Around(t.Context(), time.Now(), asked("w1", "10.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			by := ""
			for _, claim := range around[0].Others {
				by += claim.By
			}
			if by != test.by {
				t.Errorf("10.0.0.1 is claimed by %q, want %q", by, test.by)
			}
		})
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
	around, err := client.Around(t.Context(), time.Now(), asked("API.example.com", "10.96.3.9", "fd00:96::9", "10.32.0.7", "10.97.0.1"))
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
	if around, err = client.Around(t.Context(), time.Now(), asked("w1")); err != nil || !strings.Contains(around[0].Unknown, "subnet") {
		t.Errorf("%v, %+v", err, around)
	}
}

// kubeadm has the server answer with that as kubeadm's configuration.
func (s *server) kubeadm(data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers["GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config"] = corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data,
	}
}

func TestAnEndpointIsTheSameHoweverItIsWritten(t *testing.T) {
	s, client := newServer(t)
	for endpoint, name := range map[string]string{
		"[fd00::100]:6443": "fd00::100", "[fd00::100]": "fd00::100", "fd00:0::100": "fd00::100",
		"10.0.0.100:6443": "10.0.0.100", "10.0.0.100": "10.0.0.100",
		"LB.example.com:6443": "lb.example.com", "lb.example.com.": "lb.example.com",
	} {
		s.kubeadm(map[string]string{"ClusterConfiguration": fmt.Sprintf("controlPlaneEndpoint: %q", endpoint)})
		around, err := client.Around(t.Context(), time.Now(), asked("w1", name))
		if err != nil || len(around[0].Cluster) != 1 || !around[0].Cluster[0].Endpoint {
			t.Errorf("%s: %v, %+v", endpoint, err, around)
		}
	}
}

// TestWhatKubeadmSaysOfNoClusterIsNotKnown: only where there is no kubeadm there is no
// endpoint of it.
func TestWhatKubeadmSaysOfNoClusterIsNotKnown(t *testing.T) {
	s, client := newServer(t)
	for name, data := range map[string]map[string]string{
		"nothing":       nil,
		"another key":   {"ClusterStatus": "apiEndpoints: {}"},
		"an empty text": {"ClusterConfiguration": " \n"},
	} {
		s.kubeadm(data)
		if around, err := client.Around(t.Context(), time.Now(), asked("w1")); err != nil || !strings.Contains(around[0].Unknown, "ClusterConfiguration") {
			t.Errorf("%s: %v, %+v", name, err, around)
		}
	}
}

// TestNamesThatResolveToAServiceAreTheServices: NAME resolves in the Service's namespace, NAME.NAMESPACE
// everywhere. The names of a Service's pods are below these.
func TestNamesThatResolveToAServiceAreTheServices(t *testing.T) {
	s, client := newServer(t)
	s.services("kurl/registry", "minio/minio", "minio/ha-minio")
	for name, of := range map[string]string{
		"registry": "kurl/registry", "registry.kurl": "kurl/registry", "Registry.KURL.": "kurl/registry", "minio.minio": "minio/minio", "minio": "minio/minio",
		"ha-minio-0.ha-minio": "minio/ha-minio", "ha-minio-0.ha-minio.minio": "minio/ha-minio",
		"w1": "", "w1.example.com": "", "registry.example": "", "registry.minio.example": "", "kurl": "", "a.b.registry.kurl": "", "registry.minio-2": "",
	} {
		around, err := client.Around(t.Context(), time.Now(), asked(name))
		if err != nil {
			t.Fatal(err)
		}
		claims := around[0].Cluster
		if of == "" && len(claims) > 0 || of != "" && (len(claims) != 1 || claims[0].Endpoint || claims[0].Primaries || !strings.Contains(claims[0].By, of)) {
			t.Errorf("%s is %+v", name, claims)
		}
	}
}

// TestAddressesOfServicesAreTheServices: what clients reach a Service by is no node's, unless kubeadm has it as
// the control plane's, or it is the node's InternalIP and not a cluster IP.
func TestAddressesOfServicesAreTheServices(t *testing.T) {
	s, client := newServer(t)
	s.kubeadm(map[string]string{"ClusterConfiguration": "controlPlaneEndpoint: 10.0.0.100:6443\napiServer:\n  certSANs: [10.0.0.101]\n"})
	status := corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
		{IP: "10.0.0.60"}, {Hostname: "web.example.com"}, {IP: "10.0.0.100"}, {IP: "10.0.0.101"}, {IP: "10.96.0.1"},
	}}}
	s.answers["GET /api/v1/nodes"] = corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
		node("w1", false, "10.0.0.1", "10.0.0.50", "fd00::1", "10.0.0.60"), // its kubelet reports addresses of the Service, too
	}}
	s.answers["GET /api/v1/services"] = corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}, Items: []corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "headless"}, Spec: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Status: status, Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7", "fd00:96::7"}, ExternalIPs: []string{"10.0.0.50", "10.0.0.1", "fd00::1"},
		}},
	}}
	for name, want := range map[string]string{
		"10.96.0.7": "Service a/web", "fd00:96:0::7": "Service a/web", "10.0.0.50": "Service a/web", "10.0.0.60": "Service a/web", "Web.example.com": "Service a/web",
		"10.0.0.100": "the endpoint", "10.0.0.101": "a name of the API servers", "10.96.0.1": "the Kubernetes API", "10.0.0.1": "", "fd00::1": "", "none": "",
	} {
		around, err := client.Around(t.Context(), time.Now(), asked(name))
		if err != nil {
			t.Fatal(err)
		}
		claims := around[0].Cluster
		if want == "" && len(claims) > 0 || want != "" && (len(claims) == 0 || slices.ContainsFunc(claims, func(c journal.CSRClaim) bool { return !strings.Contains(c.By, want) })) {
			t.Errorf("%s is %+v", name, claims)
		}
	}
}

func TestOfManyWhoHaveANameAFewAreTold(t *testing.T) {
	s, client := newServer(t)
	all := []corev1.Node{node("w1", false, "10.0.0.1")}
	for i := range 100 {
		all = append(all, node(fmt.Sprintf("thief-%d", i), false, "10.0.0.1"))
	}
	s.list(all...)
	around, err := client.Around(t.Context(), time.Now(), asked("10.0.0.1"))
	if err != nil || len(around[0].Others) != 3 {
		t.Errorf("%v, others claim %+v", err, around)
	}
}

func TestOfANodesOwnAddressesTheFirstCount(t *testing.T) {
	s, client := newServer(t)
	addresses := make([]string, 0, 65)
	for i := range 65 {
		addresses = append(addresses, fmt.Sprintf("10.1.0.%d", i))
	}
	s.list(node("w1", false, addresses...))
	around, err := client.Around(t.Context(), time.Now(), asked("10.1.0.63", "10.1.0.64"))
	if err != nil || !slices.Contains(around[0].Node.Addresses, "10.1.0.63") || slices.Contains(around[0].Node.Addresses, "10.1.0.64") {
		t.Errorf("%v, %+v", err, around[0].Node)
	}
}

// TestAPageOfRequestsIsSmall: each can have a megabyte.
func TestAPageOfRequestsIsSmall(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /apis/certificates.k8s.io/v1/certificatesigningrequests"] = certificatesv1.CertificateSigningRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"},
	}
	for limit, want := range map[int64]string{0: "limit=32", 500: "limit=32", 33: "limit=32", 7: "limit=7"} {
		if _, err := client.Requests().ListWithContext(t.Context(), metav1.ListOptions{Limit: limit}); err != nil || !slices.Contains(strings.Split(s.query, "&"), want) {
			t.Errorf("asked for %d: %v, %s, want %s", limit, err, s.query, want)
		}
	}
}

func TestWhatMayBeReadAtTheNextLookRefusesNobody(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/nodes"] = http.StatusGone // a list that took too long
	if around, err := client.Around(t.Context(), time.Now(), asked("w1")); err == nil {
		t.Errorf("%+v", around)
	}
}

func TestWhatANodeClaimsBeyondWhatCountsForItIsClaimedAllTheSame(t *testing.T) {
	s, client := newServer(t)
	many := make([]string, 0, 70)
	for i := range 69 {
		many = append(many, fmt.Sprintf("10.1.0.%d", i))
	}
	s.list(node("w1", false, "10.0.0.1", "w1"), node("w2", false, append(many, "10.0.0.1")...))
	around, err := client.Around(t.Context(), time.Now(), asked("w1", "10.0.0.1"))
	if err != nil || len(around[0].Others) != 1 {
		t.Errorf("%v, others claim %+v", err, around)
	}
}

func TestWhatMustNotBeReadIsNamedAndAnOutageIsAnError(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/namespaces/default/services/kubernetes"] = http.StatusForbidden
	around, err := client.Around(t.Context(), time.Now(), asked("w1"))
	if err != nil || !strings.Contains(around[0].Unknown, "lacks the permission to get services") {
		t.Errorf("%v, %+v", err, around)
	}
	s.answers["GET /api/v1/namespaces/default/services/kubernetes"] = http.StatusServiceUnavailable
	if _, err := client.Around(t.Context(), time.Now(), asked("w1")); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

func TestAClusterWithoutKubeadmHasNoEndpoint(t *testing.T) {
	s, client := newServer(t)
	delete(s.answers, "GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config")
	around, err := client.Around(t.Context(), time.Now(), asked("fd00::100"))
	if err != nil || around[0].Unknown != "" || len(around[0].Cluster) != 0 {
		t.Errorf("%v, %+v", err, around)
	}
}

// direct has a client meet the server without a network, so that time can be simulated.
type direct struct{ *server }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// inBubble runs a test in simulated time; looks are how often all Nodes were listed since
// the last time.
func inBubble(t *testing.T, test func(t *testing.T, s *server, client *csr.Client, looks func() int)) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{calls: map[string]int{}, answers: answers()}
		client, err := csr.NewClient(&rest.Config{Host: "http://simulated", Transport: direct{s}}, kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := 0
		test(t, s, client, func() int {
			now := s.count("GET /api/v1/nodes")
			defer func() { before = now }()
			return now - before
		})
	})
}

func TestThoseWhoAskTogetherShareALook(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, client *csr.Client, looks func() int) {
		s.hold = make(chan struct{})
		const many = 1000
		var looking sync.WaitGroup
		for range many {
			looking.Go(func() {
				if around, err := client.Around(t.Context(), time.Now(), asked("10.0.0.1")); err != nil || around[0].Node == nil {
					t.Errorf("%v, %+v", err, around)
				}
			})
		}
		synctest.Wait()
		close(s.hold)
		looking.Wait()
		if n := looks(); n != 1 {
			t.Errorf("%d callers who asked at the same moment listed the nodes %d times", many, n)
		}
	})
}

func TestALookIsSharedWithWhomItIsNewEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *server, client *csr.Client, looks func() int) {
		for i, test := range []struct {
			after, age time.Duration
			want       int
		}{
			{0, 0, 1},
			{time.Second, 2 * time.Second, 0},
			{time.Second, 2 * time.Second, 0},
			{time.Millisecond, 2 * time.Second, 1},
			{time.Millisecond, 0, 1},
			{4 * time.Second, time.Hour, 0},
			{2 * time.Second, time.Hour, 1}, // it is not kept for long
		} {
			time.Sleep(test.after)
			if _, err := client.Around(t.Context(), time.Now().Add(-test.age), asked("w1")); err != nil || looks() != test.want {
				t.Errorf("case %d: %v, want %d looks", i, err, test.want)
			}
		}
	})
}

func TestALookThatFailedIsSharedAndOneThatWasGivenUpIsNot(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, client *csr.Client, looks func() int) {
		ask := func(ctx context.Context) error {
			_, err := client.Around(ctx, time.Now().Add(-2*time.Second), asked("w1"))
			return err
		}
		gaveUp, giveUp := context.WithCancel(t.Context())
		s.hold = make(chan struct{})
		ended := make(chan error)
		go func() { ended <- ask(gaveUp) }()
		synctest.Wait()
		giveUp()
		close(s.hold)
		if err := <-ended; err == nil || looks() != 1 {
			t.Errorf("who gave up got %v", err)
		}
		if err := ask(t.Context()); err != nil || looks() != 1 {
			t.Errorf("another one got %v", err)
		}
		time.Sleep(3 * time.Second)
		s.answers["GET /api/v1/nodes"] = http.StatusGone
		for range 100 {
			if err := ask(t.Context()); err == nil {
				t.Error("there was no error")
			}
		}
		if n := looks(); n != 1 {
			t.Errorf("the nodes were listed %d times for 100 callers", n)
		}
	})
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

func TestAllPagesOfNodesCount(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/nodes"] = corev1.NodeList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{Continue: "more"},
		Items: []corev1.Node{node("w1", false, "10.0.0.1", "w1")},
	}
	s.answers["GET /api/v1/nodes?continue=more"] = corev1.NodeList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{node("w2", false, "10.0.0.1")},
	}
	around, err := client.Around(t.Context(), time.Now(), asked("10.0.0.1"))
	if err != nil || len(around[0].Others) != 1 {
		t.Errorf("%v, %+v", err, around)
	}
}

func TestServicesThatMustNotBeReadAreNamed(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/services"] = http.StatusForbidden
	around, err := client.Around(t.Context(), time.Now(), asked("w1"))
	if err != nil || !strings.Contains(around[0].Unknown, "lacks the permission to list services") {
		t.Errorf("%v, %+v", err, around)
	}
}

func TestAllPagesOfServicesCount(t *testing.T) {
	s, client := newServer(t)
	page := func(more, name string) corev1.ServiceList {
		return corev1.ServiceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}, ListMeta: metav1.ListMeta{Continue: more},
			Items: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "kurl", Name: name}}},
		}
	}
	s.answers["GET /api/v1/services"] = page("more", "first")
	s.answers["GET /api/v1/services?continue=more"] = page("", "second")
	around, err := client.Around(t.Context(), time.Now(), asked("first", "second"))
	if err != nil || len(around[0].Cluster) != 2 {
		t.Errorf("%v, %+v", err, around)
	}
}

// TestAClusterThatCannotBeReadIsNotOneWithoutKubeadm: only what does not exist says that.
func TestAClusterThatCannotBeReadIsNotOneWithoutKubeadm(t *testing.T) {
	s, client := newServer(t)
	s.answers["GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config"] = http.StatusForbidden
	around, err := client.Around(t.Context(), time.Now(), asked("fd00::100"))
	if err != nil || !strings.Contains(around[0].Unknown, "lacks the permission to get configmaps") || !strings.HasSuffix(around[0].Unknown, `it says "no"`) {
		t.Errorf("%v, %+v", err, around)
	}
	s.answers["GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config"] = http.StatusInternalServerError
	if around, err := client.Around(t.Context(), time.Now(), asked("fd00::100")); err == nil {
		t.Errorf("%+v", around)
	}
}

func TestOnlyInternalIPsAreInternal(t *testing.T) {
	s, client := newServer(t)
	own := primary(node("w1", false, "10.0.0.1"), kube.LabelControlPlane)
	own.Status.Addresses = append(own.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "fd00::100"})
	s.list(own)
	around, err := client.Around(t.Context(), time.Now(), asked("10.0.0.1", "fd00::100"))
	if err != nil || !slices.Equal(around[0].Node.InternalIPs, []string{"10.0.0.1"}) || len(around[0].Node.Addresses) != 2 {
		t.Errorf("%v, %+v", err, around)
	}
}

func TestWhoIsInNoGroupOfNodesIsNotPutIntoOne(t *testing.T) {
	s, client := newServer(t)
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	object := csrsim.Asks("csr-1", "w1", "w1")
	object.Spec.Groups = []string{"system:authenticated"}
	s.answers["GET "+path] = certificatesv1.CertificateSigningRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}, Items: []certificatesv1.CertificateSigningRequest{*object},
	}
	page, err := client.Requests().ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil || csr.Of(&page.(*certificatesv1.CertificateSigningRequestList).Items[0]).Asked.OfNodes {
		t.Errorf("%v, %+v", err, page)
	}
}
