package loadbalancer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const lts = "haproxy:3.4.2-alpine3.24"

func TestTheManifestIsAStaticPodOfTheImage(t *testing.T) {
	got, err := Manifest(lts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "haproxy.yaml", got)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(got), &pod); err != nil {
		t.Fatal(err)
	}
	if pod.APIVersion != "v1" || pod.Kind != "Pod" || pod.Name != "haproxy" || pod.Namespace != "kube-system" || pod.Labels["app"] != "kurl-haproxy" ||
		pod.Annotations["kurl.sh/haproxy-fileversion"] != "0" || !pod.Spec.HostNetwork || len(pod.Spec.Containers) != 1 {
		t.Fatalf("it is %+v", pod)
	}
	file := corev1.HostPathFileOrCreate
	want := corev1.Container{
		Name: "haproxy", Image: lts,
		LivenessProbe: &corev1.Probe{FailureThreshold: 8, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Scheme: corev1.URISchemeHTTPS, Host: "localhost", Port: intstr.FromInt32(6444), Path: "/healthz",
		}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "haproxyconf", MountPath: "/usr/local/etc/haproxy/haproxy.cfg", ReadOnly: true}},
	}
	if diff := cmp.Diff(want, pod.Spec.Containers[0]); diff != "" {
		t.Error(diff)
	}
	volumes := []corev1.Volume{{Name: "haproxyconf", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/haproxy/haproxy.cfg", Type: &file}}}}
	if diff := cmp.Diff(volumes, pod.Spec.Volumes); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyAnImageGetsIntoTheManifest(t *testing.T) {
	for _, image := range []string{"haproxy", lts, "10.0.0.1:5000/library/haproxy@sha256:0123", "[fd00::1]:5000/haproxy:1"} {
		got, err := Manifest(image)
		if m, readErr := parseManifest([]byte(got)); err != nil || readErr != nil || m != (manifest{"0", image}) {
			t.Errorf("%q: %v, %v: %+v", image, err, readErr, m)
		}
	}
	path := filepath.Join(t.TempDir(), "haproxy.yaml")
	for _, image := range []string{"", " ", "a b", "a\"\n  hostPID: true", `a\`, "${IMAGE}", "a\x00", "-a"} {
		written, err := WriteManifest(path, image)
		if err == nil || written || !strings.Contains(err.Error(), "image ") {
			t.Errorf("%q: %v", image, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

// at puts a file with an old time there, and returns its path.
func at(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "haproxy.yaml")
	err := os.WriteFile(path, []byte(content), 0o600)
	if err := errors.Join(err, os.Chtimes(path, old, old)); err != nil {
		t.Fatal(err)
	}
	return path
}

var old = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

func contentOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// expectOnly checks that its directory has nothing but the file and the lock of a host.
func expectOnly(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && e.Name() == ".ekco-lock" })
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("the directory has %v (%v)", entries, err)
	}
}

func TestAManifestWithImageAndFileVersionIsLeftAlone(t *testing.T) {
	// As an administrator, or another EKCO, may have laid it out.
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: haproxy, namespace: kube-system%s}\nspec:\n  priorityClassName: system-node-critical\n  containers:\n  - {image: '%s', name: lb}\n  - {image: other, name: beside}\n"
	of := func(annotations, image string) string {
		return strings.Replace(strings.Replace(pod, "%s", annotations, 1), "%s", image, 1)
	}
	wanted, err := Manifest(lts)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		is, present string
		written     bool
	}{
		{"as it is written", wanted, false},
		{"without the annotation", of("", lts), false},
		{"with other annotations", of(", annotations: {a: b}", lts), false},
		{"with the annotation", of(", annotations: {kurl.sh/haproxy-fileversion: '0'}", lts), false},
		{"of another file version", of(", annotations: {kurl.sh/haproxy-fileversion: '1'}", lts), true},
		{"of an odd file version", of(", annotations: {kurl.sh/haproxy-fileversion: ''}", lts), true},
		{"of another image", of("", "haproxy:2.6"), true},
		{"whose second container has the image", strings.Replace(of("", "haproxy:2.6"), "other", lts, 1), true},
		{"without containers", "kind: Pod\nmetadata: {name: haproxy}\n", true},
		{"empty", "", true},
		{"nothing but a comment", "# soon\n---\n", true},
	} {
		t.Run(test.is, func(t *testing.T) {
			path := at(t, test.present)
			written, err := WriteManifest(path, lts)
			if err != nil || written != test.written {
				t.Fatalf("written %v, %v", written, err)
			}
			want := test.present
			if written {
				want = wanted
			}
			if got := contentOf(t, path); got != want {
				t.Errorf("it has %s", got)
			}
			info, err := os.Stat(path)
			if err != nil || info.ModTime().Equal(old) == test.written || written && info.Mode() != 0o644 {
				t.Errorf("it is of %v, %v (%v)", info.ModTime(), info.Mode(), err)
			}
			expectOnly(t, path)
		})
	}
}

func TestWhatIsNotTheManifestIsNamedAndLeftAlone(t *testing.T) {
	for _, present := range []string{
		"apiVersion: v1\nkind: Pod\n  metadata:\n", "root:x:0:0:root:/root:/bin/bash\n", "- a\n", "kind: Pod\nmetadata: {name: haproxy}\nspec: {containers: [a]}\n",
		"kind: Pod\nmetadata: {name: etcd}\n", "kind: Pod\n", "kind: Service\nmetadata: {name: haproxy}\n", "a: b\n", "{}", "\x00", strings.Repeat("#", maxManifest+1),
	} {
		path := at(t, present)
		written, err := WriteManifest(path, lts)
		if err == nil || written || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%.40q: %v", present, err)
		}
		if info, err := os.Stat(path); contentOf(t, path) != present || err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%.40q was changed (%v)", present, err)
		}
		expectOnly(t, path)
	}
}

func TestOnlyPlainFilesAreRead(t *testing.T) {
	directory, pipe := t.TempDir(), filepath.Join(t.TempDir(), "haproxy.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{directory, pipe, directory + "/"} {
		if _, err := WriteManifest(path, lts); err == nil || !strings.Contains(err.Error(), filepath.Clean(path)+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	file := at(t, "kind: Pod\n")
	if _, err := WriteManifest(filepath.Join(file, "haproxy.yaml"), lts); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
}

// TestModesAreThoseThatHAProxyNeedsWhateverTheUmaskIs is not parallel: there is one umask.
func TestModesAreThoseThatHAProxyNeedsWhateverTheUmaskIs(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(top, 0o711); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(top, "kubernetes", "manifests", "haproxy.yaml")
	before := syscall.Umask(0o077)
	written, err := WriteManifest(path, lts)
	syscall.Umask(before)
	if err != nil || !written {
		t.Fatalf("written %v, %v", written, err)
	}
	for name, want := range map[string]fs.FileMode{
		path: 0o644, filepath.Dir(path): 0o755 | fs.ModeDir, filepath.Dir(filepath.Dir(path)): 0o755 | fs.ModeDir, top: 0o711 | fs.ModeDir,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
}

// TestTheManifestIsReplacedWhole: a program that has the old one open still reads the old content, the rest of an
// interrupted attempt is no obstacle, and a failed write leaves nothing behind.
func TestTheManifestIsReplacedWhole(t *testing.T) {
	path := at(t, "kind: Pod\nmetadata: {name: haproxy}\n")
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	beside := filepath.Join(filepath.Dir(path), ".haproxy.yaml.ekco")
	if err := os.WriteFile(beside, []byte(strings.Repeat("half", 1000)), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteManifest(path, lts); err != nil {
		t.Fatal(err)
	}
	was, err := reader.Stat()
	is, isErr := os.Stat(path)
	if err := errors.Join(err, isErr); err != nil || os.SameFile(was, is) || was.Size() != 36 {
		t.Errorf("it was written over (%v)", err)
	}
	expectOnly(t, path)

	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(beside, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, path)
	if written, err := WriteManifest(path, "haproxy:2"); err == nil || written || !strings.Contains(err.Error(), "write "+path) {
		t.Errorf("written %v, %v", written, err)
	}
	if contentOf(t, path) != content {
		t.Error("it was changed")
	}
}

// TestTwoWhoWriteAtOnceNeverLeaveHalfAManifest, as the installer and EKCO may.
func TestTwoWhoWriteAtOnceNeverLeaveHalfAManifest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "haproxy.yaml")
	images := map[string]string{}
	for _, image := range []string{"haproxy:1", "haproxy:" + strings.Repeat("2", 100_000)} {
		content, err := Manifest(image)
		if err != nil {
			t.Fatal(err)
		}
		images[content] = image
		if _, err := WriteManifest(path, image); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 50 {
				for _, image := range images {
					if _, err := WriteManifest(path, image); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	written := make(chan struct{})
	go func() {
		writers.Wait()
		close(written)
	}()
	for {
		if content := contentOf(t, path); images[content] == "" {
			t.Fatalf("it has %d bytes that nobody wanted", len(content))
		}
		select {
		case <-written:
			expectOnly(t, path)
			return
		default:
		}
	}
}

// TestALinkToTheManifestStaysOne, as it did when the file was written over.
func TestALinkToTheManifestStaysOne(t *testing.T) {
	path, link := at(t, "kind: Pod\nmetadata: {name: haproxy}\n"), filepath.Join(t.TempDir(), "haproxy.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if written, err := WriteManifest(link, lts); err != nil || !written {
		t.Fatalf("written %v, %v", written, err)
	}
	if to, err := os.Readlink(link); err != nil || to != path || contentOf(t, link) != contentOf(t, path) {
		t.Errorf("the link points to %q (%v)", to, err)
	}
	expectOnly(t, path)
	expectOnly(t, link)
}

// FuzzAManifestIsTheWantedOneAfterwardsOrAsItWas starts with files that another program wrote.
func FuzzAManifestIsTheWantedOneAfterwardsOrAsItWas(f *testing.F) {
	wanted, err := Manifest(lts)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		wanted, strings.Replace(wanted, `"0"`, "0", 1), strings.Replace(wanted, lts, "haproxy", 1), wanted[:len(wanted)/2], "", "---\n", "kind: [", "a: &a [*a]\n",
		"kind: Pod\nmetadata: {name: haproxy}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, present []byte) {
		path := filepath.Join(t.TempDir(), "haproxy.yaml")
		if err := os.WriteFile(path, present, 0o600); err != nil {
			t.Fatal(err)
		}
		written, err := WriteManifest(path, lts)
		got := contentOf(t, path)
		switch {
		case written && (err != nil || got != wanted):
			t.Errorf("written: %v: %q", err, got)
		case !written && got != string(present):
			t.Errorf("not written, and changed: %q", got)
		case err != nil && !strings.Contains(err.Error(), path):
			t.Errorf("the error does not name the file: %v", err)
		}
		again, againErr := WriteManifest(path, lts)
		if again || (againErr == nil) != (err == nil) {
			t.Errorf("the second time: written %v, %v", again, againErr)
		}
	})
}
