package kube

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThePodsOnANodeAreListedWithTheirClaimsPageByPage(t *testing.T) {
	controlled := true
	web := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: &controlled}}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web"}}},
		}},
	}
	over := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "job"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	alone := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "shell"}}
	s := newServer(t, map[string]any{})
	s.answer["GET /api/v1/pods"] = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fieldSelector") != "spec.nodeName=w1" {
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
		if r.URL.Query().Get("continue") == "more" {
			s.write(w, http.StatusOK, &corev1.PodList{Items: []corev1.Pod{alone}})
			return
		}
		s.write(w, http.StatusOK, &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{web, over}})
	}
	got, err := s.client(Options{}).Residents(t.Context(), "w1")
	want := []Resident{{Namespace: "a", Name: "web", Controller: Controller{"ReplicaSet", "web-1"}, Claims: []string{"data-web"}}, {Namespace: "b", Name: "shell"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestOnlyVolumesThatCanBeOnNoOtherMachineAreLocal(t *testing.T) {
	on := func(name string, terms ...corev1.NodeSelectorTerm) corev1.PersistentVolume {
		volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if terms != nil {
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
		}
		return volume
	}
	term := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	claimed := on("claimed", term(LabelHostname, corev1.NodeSelectorOpIn, "w1"))
	claimed.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "data"}
	s := newServer(t, map[string]any{"GET /api/v1/persistentvolumes": &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{
		claimed, on("free", term(LabelHostname, corev1.NodeSelectorOpIn, "w1")), on("anywhere"), on("no terms", []corev1.NodeSelectorTerm{}...),
		on("other", term(LabelHostname, corev1.NodeSelectorOpIn, "w2")), on("two", term(LabelHostname, corev1.NodeSelectorOpIn, "w1", "w2")),
		on("either", term(LabelHostname, corev1.NodeSelectorOpIn, "w1"), term(LabelHostname, corev1.NodeSelectorOpIn, "w2")),
		on("not", term(LabelHostname, corev1.NodeSelectorOpNotIn, "w1")), on("zone", term("zone", corev1.NodeSelectorOpIn, "w1")),
	}}})
	got, err := s.client(Options{}).LocalVolumes(t.Context(), "w1")
	if diff := cmp.Diff([]LocalVolume{{"claimed", "a/data"}, {"free", ""}}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if asked := s.last(); !strings.Contains(asked.query, "limit=") {
		t.Errorf("asked %s", asked.query)
	}
}
