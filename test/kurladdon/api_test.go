package kurladdon

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/plane"
)

// addons are the other add-ons of the cluster, in kURL's variables.
var addons = []string{
	"ROOK_VERSION=1.12.8", "ROOK_MINIMUM_NODE_COUNT=3", "MINIO_VERSION=2025-10-15", "MINIO_NAMESPACE=minio", "KOTSADM_VERSION=1.120.0",
}

// site is a host with kURL's scripts, and a real API server.
type site struct {
	*plane.Plane
	dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Plane: plane.Start(t, controlplane, "--primaries", "1", "--workers", "0"), dir: t.TempDir()}
	pack, _ := buildPackage(t, "EKCO_IMAGE_ARCHIVE=/nowhere")
	if err := os.CopyFS(s.path("kurl"), os.DirFS(pack)); err != nil {
		t.Fatal(err)
	}
	// kubectl is real. The other programs are fakes, because there is no container runtime.
	write(t, s.path("programs/kubectl"), "#!/bin/sh\nbegan=$(date +%s%N)\n"+s.Program+" kubectl --kubeconfig "+s.Kubeconfig()+" \"$@\"\n"+
		"code=$?\necho $(($(date +%s%N) - began)) >>"+s.path("state/kubectl-times")+"\nexit $code\n", 0o700)
	write(t, s.path("state/images"), "docker.io/replicated/ekco:v0.29.0\n", 0o600)
	for _, dir := range []string{"etc", "usr/local/bin"} {
		if err := os.MkdirAll(s.path("host/"+dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// installs runs the installer, which must succeed, and returns its output.
func (s *site) installs(t *testing.T, variables ...string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(here, "installer.sh"), "install")
	command.Dir = s.path("kurl")
	command.Env = append(os.Environ(), "PATH="+s.path("programs")+":"+filepath.Join(here, "fakes")+":"+os.Getenv("PATH"), "EKCO_PROGRAM="+program,
		"STATE="+s.path("state"), "EKCO_HOST_ETC="+s.path("host/etc"), "EKCO_HOST_BIN="+s.path("host/usr/local/bin"))
	command.Env = append(append(command.Env, addons...), variables...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the installer: %v:\n%s", err, out)
	}
	return string(out)
}

// pod waits until one pod of the operator with this image is ready.
func (s *site) pod(t *testing.T, image string) (uid string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "one pod of "+image+" is ready", func() (bool, string) {
		out := s.Kubectl(t, "-n", "kurl", "get", "pods", "-l", "app=ekc-operator",
			"-o", `jsonpath={range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.uid} {.spec.containers[0].image}{"\n"}{end}`)
		var found string
		uid, found, _ = strings.Cut(strings.TrimSpace(out), " ")
		return found == image, out
	})
	return uid
}

// config returns the configuration in the cluster.
func (s *site) config(t *testing.T) (config map[string]any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(s.Kubectl(t, "-n", "kurl", "get", "configmap", "ekco-config", "-o", `jsonpath={.data.config\.yaml}`)), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func (s *site) has(t *testing.T, want map[string]any) {
	t.Helper()
	got, config := map[string]any{}, s.config(t)
	for key := range want {
		got[key] = config[key]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the configuration (-want +got):\n%s", diff)
	}
}

// answers checks what EKCO's service account may do: args are those of "kubectl auth can-i".
func (s *site) answers(t *testing.T, want, question string, args ...string) {
	t.Helper()
	if out := strings.TrimSpace(s.Kubectl(t, append([]string{"auth", "can-i", "--as", "system:serviceaccount:kurl:ekco"}, args...)...)); out != want {
		t.Errorf("%s: %s, want %s", question, out, want)
	}
}

const (
	objectsOfOld = "testdata/kurl-0.28.14.yaml"
	hostOfOld    = "testdata/host-0.28.14"
	tokenOfOld   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// installsOld does what kURL's add-on 0.28.14 does, which creates a new token in each run.
func (s *site) installsOld(t *testing.T, token string) {
	t.Helper()
	write(t, s.path("old.yaml"), strings.ReplaceAll(content(t, objectsOfOld), tokenOfOld, token), 0o600)
	s.Kubectl(t, "apply", "-f", s.path("old.yaml"))
	for name := range s.hostFiles(t, hostOfOld) {
		write(t, s.path("host/"+name), content(t, hostOfOld, name), 0o700)
	}
}

// hostFiles returns the files of a directory.
func (s *site) hostFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, at fs.DirEntry, err error) error {
		if err == nil && !at.IsDir() {
			files[name] = content(t, dir, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// objectsOfEKCO returns the objects of kURL's EKCO as an administrator sees them, and the names of all roles and bindings
// of EKCO.
func (s *site) objectsOfEKCO(t *testing.T) (objects map[string]string) {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := yaml.Unmarshal([]byte(s.Kubectl(t, "get", "-f", objectsOfOld, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	objects = map[string]string{}
	for role := range strings.Lines(s.Kubectl(t, "get", "clusterroles,clusterrolebindings,roles,rolebindings", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.namespace} {.metadata.name}{"\n"}{end}`)) {
		if strings.Contains(role, " ekco") {
			objects["roles"] += role
		}
	}
	for _, object := range list.Items {
		metadata := object["metadata"].(map[string]any)
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			delete(metadata, field)
		}
		if annotations, has := metadata["annotations"].(map[string]any); has {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
			delete(annotations, "deployment.kubernetes.io/revision")
		}
		delete(object, "status")
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		objects[fmt.Sprint(object["kind"], " ", metadata["name"])] = string(text)
	}
	return objects
}

// measures logs how long the installer takes, and how long kubectl does. docs/performance.md has the figures.
func (s *site) measures(t *testing.T, install func() string) string {
	t.Helper()
	_ = os.Remove(s.path("state/kubectl-times"))
	began := time.Now()
	out := install()
	took := time.Since(began)
	var kubectl time.Duration
	times := strings.Fields(content(t, s.path("state/kubectl-times")))
	for _, nanoseconds := range times {
		one, err := time.ParseDuration(nanoseconds + "ns")
		if err != nil {
			t.Fatal(err)
		}
		kubectl += one
	}
	t.Logf("nothing changes: the installer takes %s, of which kubectl %s in %d calls, and the hooks %s",
		took.Round(time.Millisecond), kubectl.Round(time.Millisecond), len(times), (took - kubectl).Round(time.Millisecond))
	return out
}

// TestUpgradeFromKURLsEKCOAndBack runs the hooks with a real API server, in a cluster with kURL's EKCO 0.28.14.
func TestUpgradeFromKURLsEKCOAndBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	installs := func(fields ...string) string {
		t.Helper()
		return s.installs(t, append([]string{"EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1", "PRIVATE_ADDRESS=10.0.0.1"}, fields...)...)
	}
	for _, namespace := range []string{"kurl", "rook-ceph", "minio"} {
		s.Kubectl(t, "create", "namespace", namespace)
	}
	s.Kubectl(t, "label", "namespace", "rook-ceph", "rook-priority.kurl.sh=")
	s.installsOld(t, tokenOfOld)
	write(t, s.path("state/lb-answers"), "", 0o600)
	theirs := s.pod(t, "replicated/ekco:v0.28.14")
	before := s.objectsOfEKCO(t)

	out := installs()
	ours := s.pod(t, "replicated/ekco:v0.29.0")
	if ours == theirs {
		t.Error("the pod is the same after the upgrade")
	}
	s.has(t, map[string]any{
		"storage_migration_auth_token": tokenOfOld, "host_task_image": "replicated/ekco:v0.29.0", "maintain_rook_storage_nodes": true,
		"minio_namespace": "minio", "rook_minimum_node_count": float64(3), "max_ceph_pool_replication": float64(3),
	})
	if !strings.Contains(out, "changes host_task_image from replicated/ekco:v0.28.14 to replicated/ekco:v0.29.0") {
		t.Errorf("the output does not name what is overwritten:\n%s", out)
	}
	if label := s.Kubectl(t, "get", "namespace", "rook-ceph", "-o", `jsonpath={.metadata.labels.rook-priority\.kurl\.sh}x`); label != "x" {
		t.Errorf("namespace rook-ceph still has its label")
	}
	s.Kubectl(t, "get", "storageclass", "scaling")
	s.hasPermissions(t)
	s.upgradedHost(t)

	// This EKCO creates no Ceph cluster, so each run warns of the field that asks for one.
	out = s.measures(t, func() string { return installs() })
	if !strings.Contains(out, "(rook_minimum_node_count)") || strings.Count(out, "WARN") != 1 {
		t.Errorf("a second run prints other warnings:\n%s", out)
	}
	if again := s.pod(t, "replicated/ekco:v0.29.0"); again != ours {
		t.Error("a second run without changes created a new pod")
	}

	s.Kubectl(t, "-n", "kurl", "scale", "deployment", "ekc-operator", "--replicas", "0")
	installs("EKCO_SHOULD_ENABLE_PURGE_NODES=1")
	if changed := s.pod(t, "replicated/ekco:v0.29.0"); changed == ours {
		t.Error("a changed field gave no new pod")
	}
	s.has(t, map[string]any{"purge_dead_nodes": true, "storage_migration_auth_token": tokenOfOld})

	newToken := strings.Repeat("fedcba9876543210", 4)
	s.installsOld(t, newToken)
	s.pod(t, "replicated/ekco:v0.28.14")
	for name := range before {
		before[name] = strings.ReplaceAll(before[name], tokenOfOld, newToken)
	}
	if diff := cmp.Diff(before, s.objectsOfEKCO(t)); diff != "" {
		t.Errorf("after the way back, the objects are not those of 0.28.14 (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(s.hostFiles(t, hostOfOld), s.hostFiles(t, s.path("host"))); diff != "" {
		t.Errorf("after the way back, the host's files are not those of 0.28.14 (-want +got):\n%s", diff)
	}

	installs()
	s.pod(t, "replicated/ekco:v0.29.0")
	s.has(t, map[string]any{"purge_dead_nodes": false, "storage_migration_auth_token": newToken})
	s.hasPermissions(t)
	s.upgradedHost(t)
}

// hasPermissions checks a permission of each role of 0.28.14. "kubectl auth can-i" needs the resource in the API server.
func (s *site) hasPermissions(t *testing.T) {
	t.Helper()
	for _, attributes := range []authorizationv1.ResourceAttributes{
		{Verb: "delete", Resource: "nodes"},
		{Verb: "update", Resource: "configmaps", Namespace: "kube-system"},
		{Verb: "delete", Resource: "persistentvolumes"},
		{Verb: "update", Group: "apps", Resource: "statefulsets", Namespace: "default"},
		{Verb: "update", Group: "velero.io", Resource: "backupstoragelocations", Namespace: "velero"},
		{Verb: "update", Resource: "configmaps", Namespace: "kurl"},
		{Verb: "patch", Group: "ceph.rook.io", Resource: "cephclusters", Namespace: "rook-ceph"},
		{Verb: "update", Group: "apps", Resource: "statefulsets", Subresource: "scale", Namespace: "minio"},
		{Verb: "delete", Group: "apps", Resource: "statefulsets", Namespace: "default"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:kurl:ekco", ResourceAttributes: &attributes,
		}}
		answer, err := s.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Status.Allowed {
			t.Errorf("EKCO may not %+v: %s", attributes, answer.Status.Reason)
		}
	}
}

// upgradedHost checks that the hooks replaced ekco-purge-node and HAProxy's manifest, and nothing else on the host.
// HAProxy serves with its configuration, and this add-on does not have the services that drain a node yet.
func (s *site) upgradedHost(t *testing.T) {
	t.Helper()
	const manifest, purge = "etc/kubernetes/manifests/haproxy.yaml", "usr/local/bin/ekco-purge-node"
	want, got := s.hostFiles(t, hostOfOld), s.hostFiles(t, s.path("host"))
	if got[purge] != content(t, "../../deploy/host/ekco-purge-node") {
		t.Errorf("%s is not the new one: %s", purge, got[purge])
	}
	// 0.28.14 compares these two, and keeps the manifest if both are as it wants.
	for _, line := range []string{`kurl.sh/haproxy-fileversion: "0"`, `image: "haproxy:3.4.2-alpine3.24"`} {
		if !strings.Contains(got[manifest], line) {
			t.Errorf("%s has no %s:\n%s", manifest, line, got[manifest])
		}
	}
	for _, files := range []map[string]string{want, got} {
		delete(files, manifest)
		delete(files, purge)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other files of the host (-before +after):\n%s", diff)
	}
}

// TestTolerationsOfKURLStay: kURL replaces the tolerations after each run of the hook, when it taints the primaries.
func TestTolerationsOfKURLStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tolerations := func() string {
		return s.Kubectl(t, "-n", "kurl", "get", "deployment", "ekc-operator", "-o", "jsonpath={.spec.template.spec.tolerations[*].key}")
	}
	installs := func() string { return s.installs(t, "ROOK_VERSION=", "ROOK_MINIMUM_NODE_COUNT=", "MINIO_VERSION=") }
	const own = "node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node.kubernetes.io/not-ready node.kubernetes.io/unreachable"
	installs()
	if got := tolerations(); got != own {
		t.Errorf("the tolerations are %s, want %s", got, own)
	}
	s.Kubectl(t, "-n", "kurl", "patch", "deployment", "ekc-operator", "--type", "merge", "-p",
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"node-role.kubernetes.io/master","operator":"Exists"}]}}}}`)
	// The Deployment creates a new pod only if this changes.
	template := func() string {
		return s.Kubectl(t, "-n", "kurl", "get", "deployment", "ekc-operator", "-o", "jsonpath={.spec.template}")
	}
	before := template()
	for range 2 {
		installs()
		if diff := cmp.Diff(before, template()); diff != "" {
			t.Errorf("a run changes the pod (-before +after):\n%s", diff)
		}
	}
	s.pod(t, "replicated/ekco:v0.29.0")
	// Other tolerations are those of the add-on again.
	s.Kubectl(t, "-n", "kurl", "patch", "deployment", "ekc-operator", "--type", "merge", "-p",
		`{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`)
	installs()
	if got := tolerations(); got != own {
		t.Errorf("the tolerations are %s, want %s", got, own)
	}
}

// TestPermissionsDependOnAddOns starts without namespace kurl.
func TestPermissionsDependOnAddOns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	none := []string{"ROOK_VERSION=", "ROOK_MINIMUM_NODE_COUNT=", "MINIO_VERSION=", "KOTSADM_VERSION="}
	s.installs(t, none...)
	s.pod(t, "replicated/ekco:v0.29.0")
	if out, err := s.KubectlCommand("-n", "default", "get", "rolebinding", "ekco-kotsadm").CombinedOutput(); err == nil {
		t.Errorf("kotsadm's permissions are there without kotsadm: %s", out)
	}
	s.installs(t, "MINIO_NAMESPACE=objects", "EKCO_OPTIONAL_RBAC=1", `ROOK_NODES=- name: "a"`+"\n  path: C:\\dev $(id)\n")
	s.has(t, map[string]any{"rook_storage_nodes": `- name: "a"` + "\n  path: C:\\dev $(id)\n", "minio_namespace": "objects"})
	s.answers(t, "yes", "EKCO may scale MinIO in its namespace", "update", "statefulsets.apps/scale", "-n", "objects")
	s.answers(t, "yes", "EKCO may delete kotsadm's StatefulSets", "delete", "statefulsets.apps", "-n", "default")
	s.answers(t, "yes", "EKCO may create events", "create", "events", "-n", "default")
}
