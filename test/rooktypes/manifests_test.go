package rooktypes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/rook"
)

// shipped returns a file of Rook's module.
func shipped(t *testing.T, path ...string) []byte {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/rook/rook").Output()
	if err != nil {
		t.Fatalf("find Rook's module: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(append([]string{strings.TrimSpace(string(module))}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// manifest returns the documents of that kind in a file that Rook ships in
// deploy/examples, as JSON.
func manifest(t *testing.T, file, kind string) [][]byte {
	t.Helper()
	var found [][]byte
	text := shipped(t, "deploy", "examples", file)
	for documents := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var object metav1.TypeMeta
		if err := errors.Join(err, yaml.Unmarshal(document, &object)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if object.Kind != kind {
			continue
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found = append(found, text)
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", file, kind)
	}
	return found
}

// only decodes the one document of that kind strictly.
func only[T any](t *testing.T, file, kind string) *T {
	t.Helper()
	found := manifest(t, file, kind)
	object := new(T)
	if len(found) != 1 {
		t.Fatalf("%s has %d of kind %s, want 1", file, len(found), kind)
	}
	if err := strict(found[0], object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

func TestANodeIsTakenOffTheClustersThatRookDescribes(t *testing.T) {
	for _, file := range []string{"cluster.yaml", "cluster-on-pvc.yaml", "cluster-on-local-pvc.yaml", "cluster-stretched-aws.yaml"} {
		t.Run(file, func(t *testing.T) {
			cluster := named(only[cephv1.CephCluster](t, file, "CephCluster"))
			cluster.Spec.Storage.UseAllNodes, cluster.Spec.Storage.Nodes = false, listed(3)
			testRemoval(t, cluster, 1)
		})
	}
}

func TestRooksVersionIsReadFromTheOperatorThatRookShips(t *testing.T) {
	operator := only[appsv1.Deployment](t, "operator.yaml", "Deployment")
	containers := &operator.Spec.Template.Spec.Containers
	*containers = append([]corev1.Container{{Name: "another", Image: "another:v1.2.3"}}, *containers...)
	_, client := serve(t, clusterOf(cephv1.StorageScopeSpec{}), operator)
	got, err := client.Detect(t.Context())
	want := rook.Installation{Present: true, Version: rook.Version{Known: true, Major: 1, Minor: 10}}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestCephIsRunInTheToolsThatRookShips(t *testing.T) {
	tools := only[appsv1.Deployment](t, "toolbox.yaml", "Deployment")
	age := 0
	podOf := func(name string, ready corev1.ConditionStatus, phase corev1.PodPhase) *corev1.Pod {
		age++
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: tools.Namespace, Name: name, Labels: tools.Spec.Template.Labels,
				CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-time.Duration(age) * time.Hour)),
			},
			Spec: tools.Spec.Template.Spec,
			Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready},
			}},
		}
	}
	// From the newest to the oldest.
	leaving := podOf("leaving", corev1.ConditionTrue, corev1.PodRunning)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	lost := podOf("lost", corev1.ConditionFalse, corev1.PodRunning)
	done := podOf("done", corev1.ConditionTrue, corev1.PodSucceeded)
	newer, older := podOf("newer", corev1.ConditionTrue, corev1.PodRunning), podOf("older", corev1.ConditionTrue, corev1.PodRunning)
	// A list may be in any order.
	_, client := serve(t, older, leaving, newer, lost, done)
	version := rook.Version{Known: true, Major: 1, Minor: 10}
	got, err := client.ToolsPod(t.Context(), version)
	if want := (rook.Pod{Name: "newer", Container: tools.Spec.Template.Spec.Containers[0].Name}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	_, client = serve(t, newer, older)
	if got, err := client.ToolsPod(t.Context(), version); err != nil || got.Name != "newer" {
		t.Errorf("in the other order: %+v, %v", got, err)
	}
}

// The server of these tests answers where Rook's types say; this is where
// Kubernetes does.
func TestCephClustersAreWhereRooksDefinitionPutsThem(t *testing.T) {
	type definition struct {
		Spec struct {
			Group    string
			Names    struct{ Plural, Kind string }
			Scope    string
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
	}
	for _, text := range manifest(t, "crds.yaml", "CustomResourceDefinition") {
		var crd definition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind != "CephCluster" {
			continue
		}
		version := crd.Spec.Versions[0]
		if !version.Served || !version.Storage || crd.Spec.Scope != "Namespaced" {
			t.Errorf("defined as %+v", crd)
		}
		got := "/apis/" + crd.Spec.Group + "/" + version.Name + "/namespaces/" + rook.Namespace + "/" + crd.Spec.Names.Plural + "/" + rook.ClusterName
		if want := pathOf(t, clusterOf(cephv1.StorageScopeSpec{})); got != want {
			t.Errorf("the path is %s, want %s", got, want)
		}
		return
	}
	t.Error("there is no definition of CephCluster")
}
