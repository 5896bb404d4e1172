package rooktypes

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/internal/rook"
)

// osdOf returns the Deployment of an OSD as Rook's operator makes it, bound to a
// machine.
func osdOf(id int, hostname string, replicas int32) *appsv1.Deployment {
	name := fmt.Sprint("rook-ceph-osd-", id)
	labels := map[string]string{"app": "rook-ceph-osd", "ceph-osd-id": fmt.Sprint(id), "osd": fmt.Sprint(id)}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rook.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Labels: labels,
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: hostname},
				Containers:   []corev1.Container{{Name: "osd", Image: "quay.io/ceph/ceph:v17.2.3"}},
			}},
		},
	}
}

// Rook's operator does not compile beside the Kubernetes libraries of today; its
// text can be read.
func TestTheLabelsOfAnOSDAreThoseOfRooksOperator(t *testing.T) {
	names := constants(t, "pkg", "operator", "ceph", "cluster", "osd", "osd.go")
	labels := osdOf(12, "w1", 1).Labels
	if labels["app"] != names["AppName"] || labels[names["OsdIdLabelKey"]] != "12" {
		t.Errorf("labels %v; Rook's app is %q and its label for the id %q", labels, names["AppName"], names["OsdIdLabelKey"])
	}
}

// constants returns the texts that a file of Rook's declares.
func constants(t *testing.T, path ...string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path[len(path)-1], shipped(t, path...), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for node := range ast.Preorder(file) {
		declared, ok := node.(*ast.ValueSpec)
		if !ok || len(declared.Values) != 1 {
			continue
		}
		if value, ok := declared.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
			found[declared.Names[0].Name], err = strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

func TestTheOSDsOfAllMachinesAreReadFromDeploymentsAsTheyAreWritten(t *testing.T) {
	other := osdOf(4, "w1", 1)
	other.Labels["app"] = "rook-ceph-mon"
	unset := osdOf(5, "w1", 0)
	unset.Spec.Replicas = nil
	_, client := serve(t, osdOf(3, "w1", 0), osdOf(12, "w1", 2), osdOf(7, "w2", 1), other, unset)
	got, err := client.OSDDeployments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []rook.OSDDeployment{
		{Name: "rook-ceph-osd-12", UID: "uid-rook-ceph-osd-12", OSD: 12, Hostname: "w1", Replicas: 2},
		{Name: "rook-ceph-osd-3", UID: "uid-rook-ceph-osd-3", OSD: 3, Hostname: "w1", Replicas: 0},
		{Name: "rook-ceph-osd-5", UID: "uid-rook-ceph-osd-5", OSD: 5, Hostname: "w1", Replicas: 1},
		{Name: "rook-ceph-osd-7", UID: "uid-rook-ceph-osd-7", OSD: 7, Hostname: "w2", Replicas: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (- wanted, + got):\n%s", diff)
	}
}

func TestADeploymentThatIsScaledDownIsStillADeployment(t *testing.T) {
	testScaleDown(t, osdOf(3, "w1", 1))
}

func testScaleDown(t *testing.T, before *appsv1.Deployment) {
	t.Helper()
	want := before.DeepCopy()
	*want.Spec.Replicas = 0
	s, client := serve(t, before)
	if err := client.ScaleDown(t.Context(), before.Name, string(before.UID)); err != nil {
		t.Fatal(err)
	}
	_, after := s.written(t, before)
	same(t, want, after)
}

func TestADeploymentIsDeletedWithOptionsThatKubernetesKnows(t *testing.T) {
	osd := osdOf(3, "w1", 1)
	s, client := serve(t, osd, osdOf(4, "w1", 1))
	if err := client.DeleteDeployment(t.Context(), osd.Name, string(osd.UID)); err != nil {
		t.Fatal(err)
	}
	request, after := s.written(t, osd)
	if after != nil {
		t.Errorf("it still exists: %v", after)
	}
	var options metav1.DeleteOptions
	if err := strict(request.body, &options); err != nil {
		t.Fatal(err)
	}
	if options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("options %s", request.body)
	}
	left, err := client.OSDDeployments(t.Context())
	want := []rook.OSDDeployment{{Name: "rook-ceph-osd-4", UID: "uid-rook-ceph-osd-4", OSD: 4, Hostname: "w1", Replicas: 1}}
	if err != nil || !cmp.Equal(left, want) {
		t.Errorf("left %v, %v", left, err)
	}
}
