package kurladdon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	write(t, s.path("programs/kubectl"), "#!/bin/sh\nexec "+s.Program+" kubectl --kubeconfig "+s.Kubeconfig()+" \"$@\"\n", 0o700)
	write(t, s.path("state/images"), "docker.io/replicated/ekco:v0.29.0\n", 0o600)
	for _, dir := range []string{"etc", "bin"} {
		if err := os.Mkdir(s.path(dir), 0o700); err != nil {
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
		"STATE="+s.path("state"), "EKCO_HOST_ETC="+s.path("etc"), "EKCO_HOST_BIN="+s.path("bin"))
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

// TestUpgradeFromKURLsEKCOAndBack runs the hooks with a real API server, in a cluster with kURL's EKCO 0.28.14.
func TestUpgradeFromKURLsEKCOAndBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, namespace := range []string{"kurl", "rook-ceph", "minio"} {
		s.Kubectl(t, "create", "namespace", namespace)
	}
	s.Kubectl(t, "label", "namespace", "rook-ceph", "rook-priority.kurl.sh=")
	s.Kubectl(t, "apply", "-f", "testdata/kurl-0.28.14.yaml")
	theirs := s.pod(t, "replicated/ekco:v0.28.14")
	token := s.config(t)["storage_migration_auth_token"]

	out := s.installs(t)
	ours := s.pod(t, "replicated/ekco:v0.29.0")
	if ours == theirs {
		t.Error("the pod is the same after the upgrade")
	}
	s.has(t, map[string]any{
		"storage_migration_auth_token": token, "host_task_image": "replicated/ekco:v0.29.0", "maintain_rook_storage_nodes": true,
		"minio_namespace": "minio", "rook_minimum_node_count": float64(3), "max_ceph_pool_replication": float64(3),
	})
	if !strings.Contains(out, "host_task_image was replicated/ekco:v0.28.14 and becomes replicated/ekco:v0.29.0") {
		t.Errorf("the output does not name what is overwritten:\n%s", out)
	}
	if label := s.Kubectl(t, "get", "namespace", "rook-ceph", "-o", `jsonpath={.metadata.labels.rook-priority\.kurl\.sh}x`); label != "x" {
		t.Errorf("namespace rook-ceph still has its label")
	}
	s.Kubectl(t, "get", "storageclass", "scaling")
	s.answers(t, "yes", "EKCO may delete Deployments of OSDs", "delete", "deployments.apps", "-n", "rook-ceph")
	s.answers(t, "yes", "EKCO may scale MinIO", "update", "statefulsets.apps/scale", "-n", "minio")

	if out := s.installs(t); strings.Contains(out, "WARN") {
		t.Errorf("a second run prints warnings:\n%s", out)
	}
	if again := s.pod(t, "replicated/ekco:v0.29.0"); again != ours {
		t.Error("a second run without changes created a new pod")
	}

	s.Kubectl(t, "-n", "kurl", "scale", "deployment", "ekc-operator", "--replicas", "0")
	s.installs(t, "EKCO_SHOULD_ENABLE_PURGE_NODES=1")
	if changed := s.pod(t, "replicated/ekco:v0.29.0"); changed == ours {
		t.Error("a changed field gave no new pod")
	}
	s.has(t, map[string]any{"purge_dead_nodes": true, "storage_migration_auth_token": token})

	s.Kubectl(t, "apply", "-f", "testdata/kurl-0.28.14.yaml")
	s.pod(t, "replicated/ekco:v0.28.14")
	s.has(t, map[string]any{"host_task_image": "replicated/ekco:v0.28.14", "storage_migration_auth_token": token})
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
