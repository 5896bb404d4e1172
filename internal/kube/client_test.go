package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/journal"
)

var (
	nodes = schema.GroupResource{Resource: "nodes"}
	pods  = schema.GroupResource{Resource: "pods"}
)

func TestErrorsHaveTheirSentinelAndSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		want   error
		text   string
	}{
		"absent":           {apierrors.NewNotFound(nodes, "a"), ErrNotFound, "get nodes a"},
		"forbidden":        {apierrors.NewForbidden(nodes, "a", errors.New("no")), ErrForbidden, `needs verb "get" on nodes`},
		"overloaded":       {apierrors.NewTooManyRequestsError("busy"), ErrUnavailable, "kube-apiserver"},
		"broken":           {apierrors.NewInternalError(errors.New("etcd")), ErrUnavailable, "kube-apiserver"},
		"etcd is down":     {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), ErrUnavailable, "because etcd has no quorum"},
		"etcd has no head": {apierrors.NewInternalError(errors.New("etcdserver: no leader")), ErrUnavailable, "because etcd has no quorum"},
		"starting":         {apierrors.NewServiceUnavailable("starting"), ErrUnavailable, "kube-apiserver"},
		"token too old":    {apierrors.NewUnauthorized("expired"), ErrUnavailable, "kube-apiserver"},
		"hanging":          {hang, ErrUnavailable, "kube-apiserver"},
		"not as it was":    {apierrors.NewConflict(nodes, "a", errors.New("changed")), ErrConflict, "read it again"},
		"something is off": {apierrors.NewBadRequest("bad"), nil, "get nodes a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, map[string]any{"GET /api/v1/nodes/a": test.answer})
				_, err := s.client(Options{}).Node(t.Context(), "a")
				if err == nil || !errors.Is(Sentinel(err), test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error is %v\nwant sentinel %v and text %q", err, test.want, test.text)
				}
			})
		})
	}
}

func TestAnAPIServerThatIsAwayIsUnavailable(t *testing.T) {
	s := newServer(t, nil)
	c := s.client(Options{})
	s.Close()
	if _, err := c.ClusterUID(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("call: %v, want ErrUnavailable", err)
	}
	if err := c.Probe(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("probe: %v, want ErrUnavailable", err)
	}
}

func TestACancelledCallDoesNotBlameTheAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(t, map[string]any{"GET /api/v1/nodes/a": func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hang(w, r)
	}})
	_, err := s.client(Options{}).Node(ctx, "a")
	if !errors.Is(err, context.Canceled) || Sentinel(err) != nil {
		t.Errorf("error is %v, want only context.Canceled", err)
	}
}

func TestAProbeAsksForReadinessAndTakesARefusalForAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		want   error
	}{
		"ready":     {"ok", nil},
		"forbidden": {apierrors.NewForbidden(nodes, "", nil), nil},
		"hanging":   {hang, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, map[string]any{"GET /readyz": test.answer})
				if err := s.client(Options{}).Probe(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("error is %v, want %v", err, test.want)
				}
			})
		})
	}
}

func TestAnAPIServerThatCallsItselfUnreadyAnswersIfItReadsNodes(t *testing.T) {
	unready := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n")
	}
	for name, test := range map[string]struct {
		nodes any
		want  error
	}{
		"reads":        {&corev1.NodeList{}, nil},
		"may not":      {apierrors.NewForbidden(nodes, "", nil), ErrUnavailable},
		"without etcd": {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), ErrUnavailable},
		"hanging":      {hang, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, map[string]any{"GET /readyz": unready, "GET /api/v1/nodes": test.nodes})
				if err := s.client(Options{}).Probe(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("error is %v, want %v", err, test.want)
				}
				if asked := s.last(); asked.line != "GET /api/v1/nodes" || asked.query != "limit=1" {
					t.Errorf("asked for %s?%s, want one Node, and not from a cache", asked.line, asked.query)
				}
			})
		})
	}
}

func TestReadsAreInProtobuf(t *testing.T) {
	deleted := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newServer(t, map[string]any{
		"GET /api/v1/namespaces/kube-system": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "cluster"}},
		"GET /api/v1/namespaces/x/pods/p": &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "u", DeletionTimestamp: &deleted},
			Spec:       corev1.PodSpec{NodeName: "a"},
		},
	})
	c := s.client(Options{})
	uid, err := c.ClusterUID(t.Context())
	if err != nil || uid != "cluster" {
		t.Errorf("cluster is %q, %v", uid, err)
	}
	pod, err := c.Pod(t.Context(), "x", "p")
	want := Pod{PodRef: journal.PodRef{Namespace: "x", Name: "p", UID: "u", DeletionTimestamp: deleted.Time}, Node: "a"}
	if diff := cmp.Diff(want, pod); err != nil || diff != "" {
		t.Errorf("%v; pod (-want +got):\n%s", err, diff)
	}
	if accept := s.last().accept; !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") {
		t.Errorf("accepts %q", accept)
	}
}

func TestADeleteIsOfOneUIDOnly(t *testing.T) {
	s := newServer(t, map[string]any{
		"DELETE /api/v1/nodes/a":             &metav1.Status{Status: metav1.StatusSuccess},
		"DELETE /api/v1/namespaces/x/pods/p": &metav1.Status{Status: metav1.StatusSuccess},
	})
	c := s.client(Options{})
	if err := c.DeleteNode(t.Context(), "a", "u1"); err != nil {
		t.Fatal(err)
	}
	options := s.last().body.(*metav1.DeleteOptions)
	if *options.Preconditions.UID != "u1" || options.GracePeriodSeconds != nil {
		t.Errorf("a node is deleted with %+v", options)
	}
	if err := c.ForceDeletePod(t.Context(), "x", "p", "u2"); err != nil {
		t.Fatal(err)
	}
	options = s.last().body.(*metav1.DeleteOptions)
	if *options.Preconditions.UID != "u2" || *options.GracePeriodSeconds != 0 {
		t.Errorf("a pod is deleted with %+v", options)
	}
	asked := len(s.requests)
	if err := c.DeleteNode(t.Context(), "a", ""); err == nil || len(s.requests) != asked {
		t.Error("a node was deleted without a UID")
	}
}

func TestARefusedDeleteSaysWhy(t *testing.T) {
	conflict := apierrors.NewConflict(pods, "p", errors.New("Precondition failed: UID in precondition: u1, UID in object meta: u2"))
	for name, test := range map[string]struct {
		deleted, read any
		want          error
	}{
		"another object": {conflict, `{"metadata":{"uid":"u2"}}`, ErrOtherUID},
		"gone meanwhile": {conflict, apierrors.NewNotFound(pods, "p"), ErrNotFound},
		"the same":       {conflict, `{"metadata":{"uid":"u1"}}`, ErrConflict},
		"gone before":    {apierrors.NewNotFound(pods, "p"), nil, ErrNotFound},
		"forbidden":      {apierrors.NewForbidden(pods, "p", nil), nil, ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]any{
				"DELETE /api/v1/namespaces/x/pods/p": test.deleted,
				"GET /api/v1/namespaces/x/pods/p":    test.read,
			})
			err := s.client(Options{}).ForceDeletePod(t.Context(), "x", "p", "u1")
			if !errors.Is(Sentinel(err), test.want) || !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

func TestRequestsAreCountedInTheWordsOfRBAC(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET /api/v1/nodes/a":                    apierrors.NewNotFound(nodes, "a"),
		"GET /api/v1/nodes":                      &corev1.NodeList{},
		"GET /readyz":                            "ok",
		"POST /api/v1/namespaces/default/events": apierrors.NewForbidden(nodes, "", nil),
		"DELETE /api/v1/namespaces/x/pods/p":     &metav1.Status{},
	})
	var got []string
	c := s.bound(Terms{OnRequest: func(verb, resource string, code int) {
		got = append(got, fmt.Sprint(verb, " ", resource, " ", code))
	}}, Options{})
	_, _ = c.Node(t.Context(), "a")
	_, _ = c.Nodes().ListWithContext(t.Context(), metav1.ListOptions{})
	_ = c.Probe(t.Context())
	_ = c.RecordEvent(t.Context(), journal.NodeSubject("a", "u"), Note{})
	_ = c.ForceDeletePod(t.Context(), "x", "p", "u")
	s.answer["GET /api/v1/nodes"] = streaming()
	opened, err := c.Nodes().WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opened.Stop()
	want := []string{"get nodes 404", "list nodes 200", "get /readyz 200", "create events 403", "delete pods 200", "watch nodes 200"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestConnectSaysHowToReachACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", Terms{}); !errors.Is(err, rest.ErrNotInCluster) || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("outside of a cluster: %v", err)
	}
	if _, err := Connect(t.TempDir()+"/none", Terms{}); err == nil || !strings.Contains(err.Error(), "/none") {
		t.Errorf("without the file: %v", err)
	}
}
