package rooktypes

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// containerResource is an entry of the list under a key of the operator's ConfigMap, with the
// fields of Rook's k8sutil.ContainerResource.
type containerResource struct {
	Name     string                      `json:"name"`
	Resource corev1.ResourceRequirements `json:"resource"`
}

// TestTheResourcesOfCSIPodsAreThoseOfRooksOwnExamples: which are in comments.
func TestTheResourcesOfCSIPodsAreThoseOfRooksOwnExamples(t *testing.T) {
	names := constants(t, "pkg", "operator", "ceph", "csi", "spec.go")
	var known []string
	for _, value := range names {
		if strings.HasPrefix(value, "CSI_") && strings.HasSuffix(value, "_RESOURCE") {
			known = append(known, value)
		}
	}
	slices.Sort(known)
	if diff := cmp.Diff(known, rook.CSIKeys()); diff != "" {
		t.Errorf("the keys that Rook reads, and those that EKCO sets:\n%s", diff)
	}
	examples := uncommented(string(shipped(t, "deploy", "examples", "operator.yaml")))
	for _, key := range rook.CSIKeys() {
		_, after, found := strings.Cut(examples, key+": |\n")
		if !found {
			t.Errorf("Rook has no example of %s", key)
			continue
		}
		// The example ends at the next line that is not indented.
		end := regexp.MustCompile(`(?m)^[^ ]`).FindStringIndex(after)
		var want, got []containerResource
		if err := yaml.UnmarshalStrict([]byte(after[:end[0]]), &want); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if err := yaml.UnmarshalStrict([]byte(rook.CSIResources(key)), &got); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (- Rook's, + EKCO's):\n%s", key, diff)
		}
	}
}

// uncommented makes the examples of a manifest text of their own.
func uncommented(manifest string) string {
	return regexp.MustCompile(`(?m)^ *# ?`).ReplaceAllString(manifest, "")
}

func rookIsThere() []metav1.Object {
	return []metav1.Object{clusterWith(1, 1, cephv1.StorageScopeSpec{}), operatorDeployment()}
}

func TestOfTheOperatorsConfigurationOnlyTheResourcesChange(t *testing.T) {
	names := constants(t, "pkg", "operator", "ceph", "controller", "controller_utils.go")
	before := &corev1.ConfigMap{ObjectMeta: metaOf(names["OperatorSettingConfigMapName"]), Data: map[string]string{"ROOK_LOG_LEVEL": "INFO"}}
	after := before.DeepCopy()
	for _, key := range rook.CSIKeys() {
		after.Data[key] = rook.CSIResources(key)
	}
	of := journal.RookOperatorConfig
	of.UID = string(before.UID)
	server, client := servePods(t, append(rookIsThere(), before)...)
	set, err := client.Change(t.Context(), of, journal.RookPodsInput{Keys: rook.CSIKeys()})
	if err != nil || len(set.Differing) > 0 {
		t.Fatalf("%v: set %+v", err, set)
	}
	_, now := server.written(t, before)
	same(t, after, now)
}

// mdsTerm selects the MDS as Rook labels them.
func mdsTerm(t *testing.T, topologyKey string) corev1.PodAffinityTerm {
	app := constants(t, "pkg", "operator", "ceph", "file", "mds", "mds.go")["AppName"]
	return corev1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{app}},
	}}}
}

func TestThePlacementOfMDSIsRooksOwnField(t *testing.T) {
	hosts, zones := mdsTerm(t, corev1.LabelHostname), mdsTerm(t, corev1.LabelTopologyZone)
	before := filesystem(1, 1).(*cephv1.CephFilesystem)
	before.Spec.MetadataServer.ActiveCount = 1
	before.Spec.MetadataServer.Placement.Tolerations = []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}}
	before.Spec.MetadataServer.Placement.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: zones}, {Weight: 50, PodAffinityTerm: hosts},
	}}
	after := before.DeepCopy()
	after.Spec.MetadataServer.Placement.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{hosts},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: zones}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metaOf("mds-a"), Spec: corev1.PodSpec{NodeName: "w1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	pod.Labels = map[string]string{"app": hosts.LabelSelector.MatchExpressions[0].Values[0], "rook_file_system": before.Name}
	if source := string(shipped(t, "pkg", "operator", "ceph", "file", "mds", "spec.go")); !strings.Contains(source, `labels["rook_file_system"] = c.fs.Name`) {
		t.Error("Rook labels the pods of MDS otherwise")
	}
	of := journal.RookMDS(before.Name)
	of.UID = journal.MDSUID(string(before.UID))
	server, client := servePods(t, append(rookIsThere(), before, pod)...)
	facts, err := client.Read(t.Context(), of)
	if err != nil || !facts.OneNode || !slices.Equal(facts.Hosts, []string{"w1"}) {
		t.Fatalf("%v: read %+v", err, facts)
	}
	if set, err := client.Change(t.Context(), of, journal.RookPodsInput{}); err != nil || !set.Spread {
		t.Fatalf("%v: set %+v", err, set)
	}
	_, now := server.written(t, before)
	same(t, after, now)
}

func TestPriorityClassesAreThoseOfKubernetesAndOnlyTheyChange(t *testing.T) {
	osd := osdOf(3, "w1", 1)
	agent := &appsv1.DaemonSet{ObjectMeta: metaOf("rook-ceph-agent")}
	agent.Labels = map[string]string{"app": "rook-ceph-agent"}
	agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "rook-ceph-agent"}}
	for _, test := range []struct {
		of     journal.Subject
		object metav1.Object
		after  func() metav1.Object
	}{
		{journal.RookWorkload(journal.KindDeployment, osd.Name), osd, func() metav1.Object {
			after := osd.DeepCopy()
			after.Spec.Template.Spec.PriorityClassName = rook.NodeCritical
			return after
		}},
		{journal.RookAgent, agent, func() metav1.Object {
			after := agent.DeepCopy()
			after.Spec.Template.Spec.PriorityClassName = rook.NodeCritical
			return after
		}},
	} {
		server, client := servePods(t, append(rookIsThere(), osd, agent)...)
		found, err := client.Workloads(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("%v: found %+v", err, found)
		}
		test.of.UID = found[test.of].UID
		if set, err := client.Change(t.Context(), test.of, journal.RookPodsInput{Class: rook.NodeCritical}); err != nil || set.Priority != rook.NodeCritical {
			t.Fatalf("%v: set %+v", err, set)
		}
		_, now := server.written(t, test.object)
		same(t, test.after(), now)
	}
	server, client := servePods(t)
	if err := client.CreatePriorityClass(t.Context(), rook.NodeCritical); err != nil || len(server.writes) != 1 {
		t.Errorf("%v: %v", err, server.writes)
	}
}
