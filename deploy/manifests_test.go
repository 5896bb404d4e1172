package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// read returns every object of the named manifests. Unknown and repeated fields
// are errors.
func read(t *testing.T, files ...string) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range bytes.Split(content, []byte("\n---\n")) {
			object, err := decode(document)
			if err != nil {
				t.Fatalf("%s, document %d: %v", file, i+1, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

func decode(document []byte) (runtime.Object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	kinds := map[string]runtime.Object{
		"v1/Namespace":       &corev1.Namespace{},
		"v1/ServiceAccount":  &corev1.ServiceAccount{},
		"v1/ConfigMap":       &corev1.ConfigMap{},
		"v1/Service":         &corev1.Service{},
		"apps/v1/Deployment": &appsv1.Deployment{},
		"rbac.authorization.k8s.io/v1/ClusterRole":        &rbacv1.ClusterRole{},
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		"rbac.authorization.k8s.io/v1/Role":               &rbacv1.Role{},
		"rbac.authorization.k8s.io/v1/RoleBinding":        &rbacv1.RoleBinding{},
	}
	object, ok := kinds[head.APIVersion+"/"+head.Kind]
	if !ok {
		return nil, fmt.Errorf("kind %s of %q is not expected here", head.Kind, head.APIVersion)
	}
	return object, yaml.UnmarshalStrict(document, object)
}

// only returns the one object of type T.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want one", len(found), *new(T))
	}
	return found[0]
}

// notListed are the files that no kustomization has. To delete a kustomization must not delete a namespace, with what
// others have in it.
var notListed = map[string]bool{"kustomization.yaml": true, "namespace.yaml": true}

func TestEveryManifestIsStrictlyValid(t *testing.T) {
	var files []string
	for _, directory := range []string{".", "kotsadm", "minio", "optional", "rook"} {
		found, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
		found = slices.DeleteFunc(found, func(name string) bool { return notListed[filepath.Base(name)] })
		if listed := resources(t, directory); !slices.Equal(slices.Sorted(slices.Values(listed)), found) {
			t.Errorf("the kustomization of %s lists %q, want %q", directory, listed, found)
		}
	}
	files = slices.DeleteFunc(files, func(name string) bool { return filepath.Base(name) == "kustomization.yaml" })
	if objects := read(t, files...); len(objects) < 20 {
		t.Errorf("%d objects, want at least 20", len(objects))
	}
}

// resources returns the files that a directory's kustomization lists.
func resources(t *testing.T, directory string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(directory, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	for i, name := range kustomization.Resources {
		kustomization.Resources[i] = filepath.Join(directory, name)
	}
	return kustomization.Resources
}

func TestTheDeploymentIsTheOneInstallersKnow(t *testing.T) {
	d := only[*appsv1.Deployment](t, read(t, "deployment.yaml"))
	pod := d.Spec.Template.Spec
	if d.Namespace+"/"+d.Name != "kurl/ekc-operator" || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("deployment is %s/%s, %d replicas, %s", d.Namespace, d.Name, *d.Spec.Replicas, d.Spec.Strategy.Type)
	}
	if d.Spec.Selector.MatchLabels["app"] != "ekc-operator" || d.Spec.Template.Labels["app"] != "ekc-operator" || d.Labels["app"] != "ekc-operator" {
		t.Error("label app is not ekc-operator")
	}
	if pod.ServiceAccountName != "ekco" || len(pod.Containers) != 1 {
		t.Fatalf("service account %q, %d containers", pod.ServiceAccountName, len(pod.Containers))
	}
	var keys []string
	for _, toleration := range pod.Tolerations {
		if toleration.TolerationSeconds != nil {
			continue // of what comes and goes
		}
		if toleration.Operator != corev1.TolerationOpExists || toleration.Effect != "" {
			t.Errorf("toleration %+v, want Exists for any effect", toleration)
		}
		keys = append(keys, toleration.Key)
	}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		keys = append(keys, term.MatchExpressions[0].Key)
	}
	primary := []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
	if want := append(slices.Clone(primary), primary...); !slices.Equal(keys, want) {
		t.Errorf("tolerations and affinity are for %q, want %q", keys, want)
	}
}

func TestTheContainerIsTheOneInstallersKnow(t *testing.T) {
	c := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec.Containers[0]
	resources := fmt.Sprintf("%s %s %s %s", c.Resources.Requests.Cpu(), c.Resources.Requests.Memory(),
		c.Resources.Limits.Cpu(), c.Resources.Limits.Memory())
	if resources != "100m 64Mi 200m 128Mi" {
		t.Errorf("requests and limits are %s", resources)
	}
	if command := strings.Join(c.Command, " "); c.Name != "ekc-operator" || command != "/usr/bin/ekco operator" {
		t.Errorf("container %s runs %q", c.Name, command)
	}
	if !strings.HasPrefix(c.Image, "replicated/ekco:v") || c.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("image %s, %s", c.Image, c.ImagePullPolicy)
	}
	if len(c.Env) != 2 || c.Env[0].Name != "LOG_LEVEL" || c.Env[0].Value != "info" || c.Env[1].Name != "NODE_NAME" || c.Env[1].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("environment is %v", c.Env)
	}
	if len(c.Ports) != 1 || c.Ports[0].Name != "service" || c.Ports[0].ContainerPort != 8080 {
		t.Errorf("ports are %v", c.Ports)
	}
	p := c.ReadinessProbe
	got := fmt.Sprintf("%s %s %d %d %d %d %d", p.HTTPGet.Path, p.HTTPGet.Port.String(),
		p.InitialDelaySeconds, p.PeriodSeconds, p.TimeoutSeconds, p.SuccessThreshold, p.FailureThreshold)
	if got != "/healthz 8080 5 5 1 1 3" {
		t.Errorf("readiness probe is %s", got)
	}
}

// TestOnlyAProcessThatHangsIsRestarted: what /readyz complains about, no restart repairs.
func TestOnlyAProcessThatHangsIsRestarted(t *testing.T) {
	pod := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec
	for name, test := range map[string]struct {
		probe            *corev1.Probe
		atLeast, answers time.Duration
	}{
		"startup":  {pod.Containers[0].StartupProbe, 10 * time.Minute, 5 * time.Minute},
		"liveness": {pod.Containers[0].LivenessProbe, time.Minute, 30 * time.Second},
	} {
		if test.probe == nil || test.probe.HTTPGet == nil || test.probe.HTTPGet.Path != "/healthz" || test.probe.HTTPGet.Port.IntValue() != 8080 {
			t.Errorf("the %s probe is %v", name, test.probe)
			continue
		}
		if patience := time.Duration(test.probe.PeriodSeconds*test.probe.FailureThreshold) * time.Second; patience < test.atLeast {
			t.Errorf("the %s probe gives up after %s", name, patience)
		}
		// A node that is short of CPU answers late.
		if patience := time.Duration(test.probe.TimeoutSeconds*test.probe.FailureThreshold) * time.Second; patience < test.answers {
			t.Errorf("the %s probe has only %s for late answers", name, patience)
		}
		if test.probe.TerminationGracePeriodSeconds != nil {
			t.Errorf("the %s probe has a time to end of its own", name)
		}
	}
}

// TestEKCOHasTimeToEndAndGoesBeforeOtherPods: it ends within 10 s, more is for a node that is
// short of everything. Another pod's priority would have it wait, or be evicted, where it has
// to repair something.
func TestEKCOHasTimeToEndAndGoesBeforeOtherPods(t *testing.T) {
	pod := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec
	if diff := cmp.Diff(new(int64(60)), pod.TerminationGracePeriodSeconds); diff != "" {
		t.Errorf("terminationGracePeriodSeconds (-want +got):\n%s", diff)
	}
	if pod.PriorityClassName != "system-cluster-critical" || pod.Priority != nil || pod.PreemptionPolicy != nil {
		t.Errorf("the priority class is %q, want system-cluster-critical, and nothing beside it", pod.PriorityClassName)
	}
}

// TestEKCOLeavesADeadPrimary: Kubernetes gives a pod without tolerations of its own 300 s.
func TestEKCOLeavesADeadPrimary(t *testing.T) {
	pod := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec
	got := map[string]int64{}
	for _, toleration := range pod.Tolerations {
		if toleration.Effect == corev1.TaintEffectNoExecute && toleration.Operator == corev1.TolerationOpExists && toleration.TolerationSeconds != nil {
			got[toleration.Key] = *toleration.TolerationSeconds
		}
	}
	if len(got) != 2 || got[corev1.TaintNodeNotReady] != 30 || got[corev1.TaintNodeUnreachable] != 30 {
		t.Errorf("tolerated are %v", got)
	}
}

func TestTheContainerCanDoNoMoreThanItNeeds(t *testing.T) {
	pod := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec
	s := pod.Containers[0].SecurityContext
	switch {
	case s == nil, s.Capabilities == nil, s.ReadOnlyRootFilesystem == nil, s.AllowPrivilegeEscalation == nil, s.SeccompProfile == nil:
		t.Fatalf("the security context is %+v", s)
	case !*s.ReadOnlyRootFilesystem, *s.AllowPrivilegeEscalation, s.Privileged != nil, s.RunAsUser != nil,
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		t.Errorf("the security context is %+v", s)
	}
	if drop := s.Capabilities.Drop; len(drop) != 1 || drop[0] != "ALL" || len(s.Capabilities.Add) != 0 {
		t.Errorf("capabilities are %+v", s.Capabilities)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.SecurityContext != nil {
		t.Error("the pod shares more with its host than directories, or has another user")
	}
}

func TestTheJournalIsOnTheNodesOwnDisk(t *testing.T) {
	pod := only[*appsv1.Deployment](t, read(t, "deployment.yaml")).Spec.Template.Spec
	got := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			t.Fatalf("mount %s has no volume", mount.Name)
		}
		source := "?"
		switch v := pod.Volumes[i]; {
		case v.HostPath != nil:
			source = fmt.Sprintf("host %s %s", v.HostPath.Path, *v.HostPath.Type)
		case v.ConfigMap != nil:
			source = "configmap " + v.ConfigMap.Name
		case v.EmptyDir != nil:
			source = "empty up to " + v.EmptyDir.SizeLimit.String()
		}
		got[mount.MountPath] = fmt.Sprintf("%s readonly=%t", source, mount.ReadOnly)
	}
	want := map[string]string{
		"/etc/ekco":           "configmap ekco-config readonly=true",
		"/etc/kubernetes/pki": "host /etc/kubernetes/pki Directory readonly=true",
		"/var/lib/ekco":       "host /var/lib/ekco DirectoryOrCreate readonly=false",
		"/tmp":                "empty up to 64Mi readonly=false",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("mounts are %v, want %v", got, want)
	}
}

func TestTheServiceHasTheOneNodePort(t *testing.T) {
	s := only[*corev1.Service](t, read(t, "service.yaml"))
	if s.Namespace+"/"+s.Name != "kurl/ekc-operator" || s.Spec.Type != corev1.ServiceTypeNodePort || s.Spec.Selector["app"] != "ekc-operator" {
		t.Errorf("service is %s/%s, %s, selects %v", s.Namespace, s.Name, s.Spec.Type, s.Spec.Selector)
	}
	if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8080 || s.Spec.Ports[0].TargetPort.IntValue() != 8080 || s.Spec.Ports[0].NodePort != 31880 {
		t.Errorf("ports are %+v, want 8080 on node port 31880", s.Spec.Ports)
	}
}

func TestTheConfigMapHasEveryKeyOnALineOfItsOwn(t *testing.T) {
	c := only[*corev1.ConfigMap](t, read(t, "configmap.yaml"))
	if c.Namespace+"/"+c.Name != "kurl/ekco-config" || len(c.Data) != 1 {
		t.Fatalf("configmap is %s/%s with %d keys", c.Namespace, c.Name, len(c.Data))
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(c.Data["config.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`node_unreachable_toleration clear_dead_nodes purge_dead_nodes min_ready_master_nodes
		min_ready_worker_nodes maintain_rook_storage_nodes rook_storage_nodes reconcile_rook_mds_placement
		reconcile_ceph_csi_resources ceph_block_pool ceph_filesystem ceph_object_store min_ceph_pool_replication
		max_ceph_pool_replication certificates_dir reconcile_interval rotate_certs rotate_certs_image
		rotate_certs_namespace rotate_certs_ttl rotate_certs_check_interval registry_cert_namespace
		registry_cert_secret kurl_proxy_cert_namespace kurl_proxy_cert_secret kotsadm_kubelet_cert_namespace
		kotsadm_kubelet_cert_secret contour_cert_namespace contour_cert_secret envoy_cert_secret
		rook_priority_class host_task_image host_task_namespace enable_internal_load_balancer
		internal_load_balancer_haproxy_image pod_image_overrides auto_approve_kubelet_csrs
		restart_failed_envoy_pods envoy_pods_not_ready_duration enable_ha_minio minio_namespace minio_util_image
		enable_ha_kotsadm rook_minimum_node_count rook_ceph_image rook_storage_class storage_migration_auth_token`)
	for _, key := range want {
		if !strings.Contains("\n"+c.Data["config.yaml"], "\n"+key+": ") {
			t.Errorf("key %s is missing, or is not on one line", key)
		}
		delete(values, key)
	}
	if len(values) > 0 {
		t.Errorf("keys that no installer sets: %v", values)
	}
}
