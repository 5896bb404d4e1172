package kube

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

func TestAllNodesAreListedPageByPage(t *testing.T) {
	page := func(next string, names ...string) *corev1.NodeList {
		list := &corev1.NodeList{ListMeta: metav1.ListMeta{Continue: next}}
		for _, name := range names {
			list.Items = append(list.Items, corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{LabelControlPlane: ""}},
				Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}},
			})
		}
		return list
	}
	s := newServer(t, map[string]any{})
	s.answer["GET /api/v1/nodes"] = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "more" {
			s.write(w, http.StatusOK, page("", "a"))
			return
		}
		s.write(w, http.StatusOK, page("more", "b", "c"))
	}
	nodes, err := s.client(Options{}).ListNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
		if node.Facts.InternalIP != "10.0.0.1" || node.Facts.Role != journal.RolePrimary {
			t.Errorf("read %+v", node)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("read %q", names)
	}
	s.answer["GET /api/v1/nodes"] = apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	if _, err := s.client(Options{}).ListNodes(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("error is %v", err)
	}
}

// lostNode is a Node as the API has it, with the taint or without.
func lostNode(lost bool) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
	if lost {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	}
	return node
}

func TestANodeIsReadAnewEachTimeAndNotFromACacheOfTheAPIServer(t *testing.T) {
	s := newServer(t, map[string]any{})
	c := s.client(Options{})
	for read, lost := range []bool{true, false, true} {
		s.answer["GET /api/v1/nodes/a"] = lostNode(lost)
		node, err := c.Node(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, unreachable := node.Facts.Unreachable(); unreachable != lost {
			t.Errorf("read %d: unreachable is %v, want %v", read, unreachable, lost)
		}
		if got := s.last().query; got != "" {
			t.Errorf("asked with %q: with a resourceVersion the API server may answer from its cache", got)
		}
	}
	if got := len(s.requests); got != 3 {
		t.Errorf("%d requests for 3 reads", got)
	}
}

// TestLabelsAndHostnamesOutliveThatListsAreKeptSmall: what is watched is whole, so that facts
// would change with each list.
func TestLabelsAndHostnamesOutliveThatListsAreKeptSmall(t *testing.T) {
	node := func(name, address string, labels map[string]string) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: address}}},
		}
	}
	list := &corev1.NodeList{Items: []corev1.Node{
		node("a", "a", map[string]string{LabelHostname: "a", "store": "yes", "zone": "z"}),
		node("b", "b", map[string]string{LabelHostname: "b.example.com"}),
		node("c", "c.local", nil),
	}}
	s := newServer(t, map[string]any{"GET /api/v1/nodes": list, "GET /api/v1/nodes/a": &list.Items[0]})
	client := s.client(Options{NodeLabels: []string{"store"}})
	nodes, err := client.ListNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, err := client.Node(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, node := range append(nodes, one) {
		got = append(got, fmt.Sprintf("%s on %s %v", node.Name, node.Facts.Hostname, node.Facts.Labels))
	}
	asListed := "a on a map[store:yes]"
	if want := []string{asListed, "b on b.example.com map[]", "c on c.local map[]", asListed}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	listed, err := client.Nodes().ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]string{{"store": "yes"}, {LabelHostname: "b.example.com"}, nil} {
		if got := listed.(*corev1.NodeList).Items[i].Labels; !maps.Equal(got, want) {
			t.Errorf("the list keeps %v of node %d, want %v", got, i, want)
		}
	}
}
