package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/journal"
)

// fullNode has everything that facts are read from, and more.
func fullNode() *corev1.Node {
	added := metav1.NewTime(time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("CET", 3600)))
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "9", CreationTimestamp: added,
			Labels:        map[string]string{LabelControlPlane: "", LabelExclude: "true", "other": "x"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{PodCIDR: "10.1.0.0/24", Taints: []corev1.Taint{
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added},
			{Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added},
			{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "host-a"},
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
				{Type: corev1.NodeInternalIP, Address: "fd00::1"},
			},
			Images: []corev1.ContainerImage{{Names: []string{"image"}}},
		},
	}
}

func fullFacts() Node {
	added := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Node{Name: "a", UID: "u", Facts: journal.NodeFacts{
		Role: journal.RolePrimary, Excluded: true, InternalIP: "10.0.0.1", Hostname: "host-a", CreatedAt: added,
		Taints: []journal.Taint{
			{Key: journal.TaintNotReady, Effect: "NoSchedule"},
			{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: added},
			{Key: journal.TaintUnreachable, Effect: "NoSchedule", TimeAdded: added},
			{Key: journal.TaintUnschedulable, Effect: "NoSchedule"},
		},
	}}
}

func TestFactsAreReadFromANodeWholeOrSlim(t *testing.T) {
	node := fullNode()
	if diff := cmp.Diff(fullFacts(), NodeOf(node)); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	Slim(node)
	if diff := cmp.Diff(fullFacts(), NodeOf(node)); diff != "" {
		t.Errorf("facts of the slim node (-want +got):\n%s", diff)
	}
	if node.ResourceVersion != "9" || node.ManagedFields != nil || node.Status.Images != nil || len(node.Labels) != 2 {
		t.Errorf("the slim node is %+v", node)
	}
}

func TestLabelsDecideRoleAndExclusion(t *testing.T) {
	for _, test := range []struct {
		labels   map[string]string
		role     journal.NodeRole
		excluded bool
	}{
		{nil, journal.RoleWorker, false},
		{map[string]string{LabelMaster: ""}, journal.RolePrimary, false},
		{map[string]string{LabelMaster: "false"}, journal.RolePrimary, false},
		{map[string]string{LabelControlPlane: "x"}, journal.RolePrimary, false},
		{map[string]string{LabelExclude: ""}, journal.RoleWorker, true},
		{map[string]string{LabelExclude: "false"}, journal.RoleWorker, false},
	} {
		facts := NodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}).Facts
		if facts.Role != test.role || facts.Excluded != test.excluded {
			t.Errorf("labels %v: %s, excluded %t", test.labels, facts.Role, facts.Excluded)
		}
	}
}

func TestASourceListsSlimObjectsInPages(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET /api/v1/nodes": &corev1.NodeList{
			ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: []corev1.Node{*fullNode()},
		},
		"GET /api/v1/pods": &corev1.PodList{Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "x"}},
			Spec:       corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c"}}},
		}}},
	})
	c := s.client(Options{})
	listed, err := c.Nodes().ListWithContext(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	page := listed.(*corev1.NodeList)
	if page.Continue != "more" || page.Items[0].Status.Images != nil || s.last().query != "limit=1" {
		t.Errorf("asked with %q, got %+v", s.last().query, page)
	}
	listed, err = c.PodsOn("a").ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := listed.(*corev1.PodList).Items[0]
	query, _ := url.ParseQuery(s.last().query)
	if query.Get("fieldSelector") != "spec.nodeName=a" || pod.Spec.Containers != nil || pod.Labels != nil || pod.Spec.NodeName != "a" {
		t.Errorf("asked with %v, got %+v", query, pod)
	}
}

func TestAWatchOutlivesTheCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, map[string]any{"GET /api/v1/nodes": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json;stream=watch")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(3 * DefaultCallTimeout)
			raw, _ := json.Marshal(fullNode())
			_, _ = w.Write([]byte(`{"type":"ADDED","object":` + string(raw) + `}`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}})
		opened, err := s.client(Options{}).Nodes().WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "9"})
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Stop()
		event, ok := <-opened.ResultChan()
		if !ok {
			t.Fatal("the watch ended at the call timeout")
		}
		if diff := cmp.Diff(fullFacts(), NodeOf(event.Object.(*corev1.Node))); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	})
}

func TestAWatchThatIsNotOpenedInTimeIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, map[string]any{"GET /api/v1/nodes": hang})
		began := time.Now()
		_, err := s.client(Options{}).Nodes().WatchWithContext(t.Context(), metav1.ListOptions{})
		if took := time.Since(began); !errors.Is(err, ErrUnavailable) || took != DefaultCallTimeout {
			t.Errorf("after %s the error is %v, want ErrUnavailable", took, err)
		}
	})
}

func TestARefusedWatchKeepsWhatClientGoMustKnow(t *testing.T) {
	s := newServer(t, map[string]any{"GET /api/v1/nodes": apierrors.NewForbidden(nodes, "", errors.New("no"))})
	c := s.client(Options{})
	_, err := c.Nodes().WatchWithContext(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, ErrForbidden) || !apierrors.IsForbidden(err) {
		t.Errorf("error is %v, want ErrForbidden and client-go's", err)
	}
	s.answer["GET /api/v1/nodes"] = apierrors.NewResourceExpired("too old")
	if _, err := c.Nodes().WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
		t.Errorf("error is %v, want client-go's for an old version", err)
	}
}

// TestOfASecretThatIsWatchedNothingIsKept but what tells that it has changed.
func TestOfASecretThatIsWatchedNothingIsKept(t *testing.T) {
	secret := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kurl", Name: "registry-pki", UID: "u", ResourceVersion: "9", Annotations: map[string]string{"last-applied": "secret"}},
		Data:       map[string][]byte{"registry.key": []byte("secret")},
	}
	list := &corev1.SecretList{Items: []corev1.Secret{*secret.DeepCopy()}}
	for _, obj := range []runtime.Object{secret.DeepCopy(), list} {
		SlimSecret(obj)
		raw, err := json.Marshal(obj)
		if err != nil || strings.Contains(string(raw), "last-applied") || strings.Contains(string(raw), "registry.key") || !strings.Contains(string(raw), `"resourceVersion":"9"`) {
			t.Errorf("%v: %s", err, raw)
		}
	}
}
