package kube

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const kubeadmPath = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"

func kubeadmConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kubeadm-config", Namespace: "kube-system", ResourceVersion: "7", UID: "u",
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		},
		Data:       map[string]string{"ClusterConfiguration": "kind: ClusterConfiguration\n", "ClusterStatus": "old\n"},
		BinaryData: map[string][]byte{"more": {0, 1}},
	}
}

func TestTheClusterStatusIsReplacedAndNothingElse(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET " + kubeadmPath: kubeadmConfigMap(),
		"PUT " + kubeadmPath: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}},
	})
	c := s.client(Options{})
	read, err := c.KubeadmConfig(t.Context())
	if err != nil || read != (KubeadmConfig{ClusterStatus: "old\n", Version: "7"}) {
		t.Fatalf("read %+v, %v", read, err)
	}
	version, err := c.WriteClusterStatus(t.Context(), "new\n", read.Version)
	if err != nil || version != "8" {
		t.Fatalf("version %q, %v", version, err)
	}
	want := kubeadmConfigMap()
	want.Data["ClusterStatus"] = "new\n"
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	got := s.last().body.(*corev1.ConfigMap)
	got.TypeMeta = want.TypeMeta
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the ConfigMap that was sent differs (-want +got):\n%s", diff)
	}
}

func TestAClusterStatusThatChangedOrIsNotThereIsNotWritten(t *testing.T) {
	without := kubeadmConfigMap()
	delete(without.Data, "ClusterStatus")
	for name, test := range map[string]struct {
		get, put any
		version  string
		want     error
	}{
		"changed since it was read": {kubeadmConfigMap(), nil, "6", ErrConflict},
		"changed meanwhile":         {kubeadmConfigMap(), apierrors.NewConflict(configMaps, "kubeadm-config", errors.New("changed")), "7", ErrConflict},
		"deleted":                   {apierrors.NewNotFound(configMaps, "kubeadm-config"), nil, "7", ErrConflict},
		"deleted meanwhile":         {kubeadmConfigMap(), apierrors.NewNotFound(configMaps, "kubeadm-config"), "7", ErrConflict},
		"forbidden":                 {kubeadmConfigMap(), apierrors.NewForbidden(configMaps, "kubeadm-config", nil), "7", ErrForbidden},
		"without the key":           {without, nil, "7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]any{"GET " + kubeadmPath: test.get}
			if test.put != nil {
				answers["PUT "+kubeadmPath] = test.put
			}
			_, err := newServer(t, answers).client(Options{}).WriteClusterStatus(t.Context(), "new", test.version)
			if err == nil || !errors.Is(Sentinel(err), test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

func TestKubernetes122HasNoClusterStatus(t *testing.T) {
	without := kubeadmConfigMap()
	delete(without.Data, "ClusterStatus")
	s := newServer(t, map[string]any{"GET " + kubeadmPath: without})
	if got, err := s.client(Options{}).KubeadmConfig(t.Context()); err != nil || got != (KubeadmConfig{Version: "7"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAPIServersAreListedWithWhatTheyAdvertise(t *testing.T) {
	pod := func(name, node, endpoint string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		if endpoint != "" {
			p.Annotations = map[string]string{"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": endpoint}
		}
		return p
	}
	s := newServer(t, map[string]any{"GET /api/v1/namespaces/kube-system/pods": &corev1.PodList{Items: []corev1.Pod{
		pod("kube-apiserver-b", "b", ""), pod("kube-apiserver-a", "a", "10.0.0.1:6443"),
	}}})
	got, err := s.client(Options{}).APIServerPods(t.Context())
	want := []APIServerPod{{"kube-apiserver-a", "a", "10.0.0.1:6443"}, {"kube-apiserver-b", "b", ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if query := s.last().query; !strings.Contains(query, "labelSelector=component%3Dkube-apiserver%2Ctier%3Dcontrol-plane") {
		t.Errorf("asked for %s", query)
	}
	s.answer["GET /api/v1/namespaces/kube-system/pods"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	if _, err := s.client(Options{}).APIServerPods(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}
