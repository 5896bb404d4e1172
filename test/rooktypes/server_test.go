package rooktypes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	"go.uber.org/goleak"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an API server in memory. Each object of it has a Go type of Rook's
// or Kubernetes', and every write is decoded strictly into that type.
type server struct {
	t *testing.T

	mu      sync.Mutex
	objects map[string]any
	// order is that of lists.
	order  []string
	writes []write
}

type write struct {
	method, path string
	body         []byte
}

// serve returns a server that has the objects, and EKCO's client for it.
func serve(t *testing.T, objects ...metav1.Object) (*server, *rook.Client) {
	t.Helper()
	s, config := serveTo(t, objects...)
	client, err := rook.NewClient(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

// serveCustom is serve for the client of custom resources.
func serveCustom(t *testing.T, objects ...metav1.Object) (*server, *rook.Custom) {
	t.Helper()
	s, config := serveTo(t, objects...)
	client, err := kube.NewObjects(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, rook.NewCustom(client)
}

// servePods is serve for the client of what Rook gives its pods.
func servePods(t *testing.T, objects ...metav1.Object) (*server, *rook.Pods) {
	t.Helper()
	s, config := serveTo(t, objects...)
	client, err := kube.NewObjects(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, rook.NewPods(client)
}

func serveTo(t *testing.T, objects ...metav1.Object) (*server, *rest.Config) {
	t.Helper()
	s := &server{t: t, objects: make(map[string]any)}
	for _, object := range objects {
		path := pathOf(t, object)
		s.objects[path], s.order = object, append(s.order, path)
	}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return s, &rest.Config{Host: listener.URL, Transport: transport}
}

// pathOf takes group and version from the types' own packages.
func pathOf(t *testing.T, object metav1.Object) string {
	t.Helper()
	place := "/namespaces/" + object.GetNamespace() + "/%s/" + object.GetName()
	switch object.(type) {
	case *cephv1.CephCluster:
		return "/apis/" + cephv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "cephclusters")
	case *cephv1.CephBlockPool:
		return "/apis/" + cephv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "cephblockpools")
	case *cephv1.CephFilesystem:
		return "/apis/" + cephv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "cephfilesystems")
	case *cephv1.CephObjectStore:
		return "/apis/" + cephv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "cephobjectstores")
	case *appsv1.Deployment:
		return "/apis/" + appsv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "deployments")
	case *appsv1.DaemonSet:
		return "/apis/" + appsv1.SchemeGroupVersion.String() + fmt.Sprintf(place, "daemonsets")
	case *corev1.ConfigMap:
		return "/api/" + corev1.SchemeGroupVersion.String() + fmt.Sprintf(place, "configmaps")
	case *corev1.Pod:
		return "/api/" + corev1.SchemeGroupVersion.String() + fmt.Sprintf(place, "pods")
	}
	t.Fatalf("a %T has no path", object)
	return ""
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[r.URL.Path]
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, write{r.Method, r.URL.Path, body})
	}
	selector := r.URL.Query().Get("labelSelector")
	switch {
	case selector != "", r.Method == http.MethodGet && s.isCollection(r.URL.Path+"/"):
		object, err = s.list(r.URL.Path+"/", selector)
	case r.Method == http.MethodPost:
		object, err = created(r.URL.Path, body)
	case !ok:
		err = fmt.Errorf("there is no %s", r.URL.Path)
	case r.Method == http.MethodPatch:
		object, err = patched(object, body)
	case r.Method == http.MethodPut:
		object, err = replaced(object, body)
	case r.Method == http.MethodDelete:
		err = s.remove(r.URL.Path, object, body)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		s.t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, body)
		return
	}
	if _, still := s.objects[r.URL.Path]; still {
		s.objects[r.URL.Path] = object
	}
	if err := json.NewEncoder(w).Encode(object); err != nil {
		s.t.Error(err)
	}
}

// isCollection reports whether there are objects below. It expects mu to be held.
func (s *server) isCollection(below string) bool {
	return slices.ContainsFunc(s.order, func(path string) bool { return strings.HasPrefix(path, below) })
}

// created decodes the body strictly into the type of the collection.
func created(collection string, body []byte) (any, error) {
	if want := "/apis/" + schedulingv1.SchemeGroupVersion.String() + "/priorityclasses"; collection != want {
		return nil, fmt.Errorf("EKCO creates nothing at %s", collection)
	}
	into := new(schedulingv1.PriorityClass)
	return into, strict(body, into)
}

// list expects mu to be held.
func (s *server) list(below, selector string) (any, error) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, path := range s.order {
		object, ok := s.objects[path].(metav1.Object)
		if ok && strings.HasPrefix(path, below) && wanted.Matches(labels.Set(object.GetLabels())) {
			items = append(items, object)
		}
	}
	return map[string]any{"kind": "List", "apiVersion": "v1", "items": items}, nil
}

// patched returns the object with a JSON patch applied.
func patched(object any, body []byte) (any, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	return replaced(object, after)
}

// replaced decodes body strictly into the type of object.
func replaced(object any, body []byte) (any, error) {
	var into any
	switch object.(type) {
	case *cephv1.CephCluster:
		into = new(cephv1.CephCluster)
	case *cephv1.CephBlockPool:
		into = new(cephv1.CephBlockPool)
	case *cephv1.CephFilesystem:
		into = new(cephv1.CephFilesystem)
	case *cephv1.CephObjectStore:
		into = new(cephv1.CephObjectStore)
	case *appsv1.Deployment:
		into = new(appsv1.Deployment)
	case *appsv1.DaemonSet:
		into = new(appsv1.DaemonSet)
	case *corev1.ConfigMap:
		into = new(corev1.ConfigMap)
	default:
		return nil, fmt.Errorf("EKCO writes no %T", object)
	}
	return into, strict(body, into)
}

// remove expects mu to be held.
func (s *server) remove(path string, object any, body []byte) error {
	var options metav1.DeleteOptions
	if err := strict(body, &options); err != nil {
		return err
	}
	uid := object.(metav1.Object).GetUID()
	if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != uid {
		return fmt.Errorf("preconditions %+v, want UID %s", options.Preconditions, uid)
	}
	delete(s.objects, path)
	return nil
}

// written returns the only write, and the object afterwards.
func (s *server) written(t *testing.T, object metav1.Object) (write, any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.writes) != 1 {
		t.Fatalf("%d writes, want 1", len(s.writes))
	}
	return s.writes[0], s.objects[pathOf(t, object)]
}
