package loadbalancer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/journal"
)

var twoPrimaries = []string{"10.0.0.1", "10.0.0.2"}

func configOf(t *testing.T, primaries []string) string {
	t.Helper()
	config, err := Config(primaries)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// expectHost is that the host has the files, readable to all.
func expectHost(t *testing.T, h Host, primaries []string, image string) {
	t.Helper()
	manifest, err := Manifest(image)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{h.ConfigPath(): configOf(t, primaries), h.ManifestPath(): manifest} {
		if got := contentOf(t, path); got != want {
			t.Errorf("%s has %s", path, got)
		}
		for name, mode := range map[string]fs.FileMode{path: 0o644, filepath.Dir(path): 0o755} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%v: %s has mode %s", err, name, info.Mode())
			}
		}
		expectOnly(t, path)
	}
}

// TestAHostGetsItsFilesWhateverTheUmaskIs is not parallel: there is one umask.
func TestAHostGetsItsFilesWhateverTheUmaskIs(t *testing.T) {
	before := syscall.Umask(0o027)
	defer syscall.Umask(before)
	bare := Host{Etc: t.TempDir()}
	// As an installer leaves it there, with a file that the kubelet made.
	installed := Host{Etc: t.TempDir()}
	if err := errors.Join(os.Mkdir(filepath.Dir(installed.ConfigPath()), 0o777), os.WriteFile(installed.ConfigPath(), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, h := range []Host{bare, installed} {
		for _, step := range []struct {
			primaries []string
			image     string
			want      journal.LoadBalancerOnNode
		}{
			{twoPrimaries, lts, journal.LoadBalancerOnNode{Config: true, Manifest: true}},
			{twoPrimaries, lts, journal.LoadBalancerOnNode{}},
			{twoPrimaries[:1], lts, journal.LoadBalancerOnNode{Config: true}},
			{twoPrimaries[:1], "haproxy:2", journal.LoadBalancerOnNode{Manifest: true}},
		} {
			step.want.Backend, step.want.Image, step.want.Version = Backend(configOf(t, step.primaries)), step.image, "0"
			on, err := h.Write(t.Context(), step.primaries, step.image)
			if diff := cmp.Diff(step.want, on); err != nil || diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
			expectHost(t, h, step.primaries, step.image)
		}
	}
}

func TestAConfigurationAloneLeavesTheManifestAndSaysWhichItIs(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	want := journal.LoadBalancerOnNode{Backend: Backend(configOf(t, twoPrimaries)), Config: true}
	on, err := h.WriteConfig(t.Context(), twoPrimaries)
	if diff := cmp.Diff(want, on); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if _, err := os.Stat(h.ManifestPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it wrote a manifest: %v", err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err != nil {
		t.Fatal(err)
	}
	want.Config, want.Image, want.Version = false, lts, "0"
	on, err = h.WriteConfig(t.Context(), twoPrimaries)
	if diff := cmp.Diff(want, on); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if err := os.WriteFile(h.ManifestPath(), []byte("kind: Service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteConfig(t.Context(), twoPrimaries); err == nil || !strings.Contains(err.Error(), "is not HAProxy's manifest") {
		t.Error(err)
	}
}

// TestAConfigurationThatHAProxyMayNotReadIsOpened although its content is right: an installer wrote it where
// the umask was 027.
func TestAConfigurationThatHAProxyMayNotReadIsOpened(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(h.ConfigPath(), 0o640), os.Chmod(filepath.Dir(h.ConfigPath()), 0o750)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteConfig(t.Context(), twoPrimaries); err != nil {
		t.Error(err)
	}
	expectHost(t, h, twoPrimaries, lts)
}

func TestAHostIsGivenAManifestOnlyWhereItHasNone(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	for _, step := range []struct {
		image string
		want  journal.LoadBalancerOnNode
	}{
		{lts, journal.LoadBalancerOnNode{Config: true, Manifest: true}},
		{"haproxy:2", journal.LoadBalancerOnNode{}},
	} {
		step.want.Backend, step.want.Image, step.want.Version = Backend(configOf(t, twoPrimaries)), lts, "0"
		on, err := h.Provide(t.Context(), twoPrimaries, step.image)
		if diff := cmp.Diff(step.want, on); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		expectHost(t, h, twoPrimaries, lts)
	}
	if _, err := h.Provide(t.Context(), twoPrimaries, "a b"); err == nil {
		t.Error("it takes what is no image")
	}
}

// TestTheConfigurationStaysTheSameFile: HAProxy's container mounts the file, not its directory.
func TestTheConfigurationStaysTheSameFile(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err != nil {
		t.Fatal(err)
	}
	mounted, err := os.Open(h.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	for _, byHand := range []string{"", "# nothing\n", strings.Repeat("# much\n", 1000), strings.Repeat("#", maxConfig+1)} {
		if err := os.WriteFile(h.ConfigPath(), []byte(byHand), 0o600); err != nil {
			t.Fatal(err)
		}
		if written, err := h.Write(t.Context(), twoPrimaries, lts); err != nil || !written.Config || written.Manifest {
			t.Errorf("%+v, %v", written, err)
		}
		expectHost(t, h, twoPrimaries, lts)
	}
	was, wasErr := mounted.Stat()
	is, isErr := os.Stat(h.ConfigPath())
	if err := errors.Join(wasErr, isErr); err != nil || !os.SameFile(was, is) {
		t.Errorf("it is another file now (%v)", err)
	}
}

func TestAHostKeepsItsFilesWhereWhatIsWantedMakesNoSense(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		primaries []string
		image     string
	}{{nil, lts}, {[]string{}, lts}, {[]string{"a b"}, lts}, {twoPrimaries[:1], ""}, {twoPrimaries[:1], "a b"}} {
		if written, err := h.Write(t.Context(), wrong.primaries, wrong.image); err == nil || written != (journal.LoadBalancerOnNode{}) {
			t.Errorf("%+v, %v", written, err)
		}
		expectHost(t, h, twoPrimaries, lts)
	}
}

func TestWhatStandsInTheConfigurationsWayIsNamed(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	if err := os.MkdirAll(h.ConfigPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	if written, err := h.Write(t.Context(), twoPrimaries, lts); err == nil || written.Config || !strings.Contains(err.Error(), "write "+h.ConfigPath()+": "+h.ConfigPath()+" is not a regular file") {
		t.Errorf("%+v, %v", written, err)
	}
	if _, err := os.Stat(h.ManifestPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a manifest without a configuration: %v", err)
	}
}

func TestTheProbeOfAManifestOnlyConnectsWhereAskedAndStaysSo(t *testing.T) {
	host := Host{Etc: t.TempDir()}
	for i, test := range []struct {
		tcp     bool
		image   string
		written bool
		version string
	}{
		{false, lts, true, FileVersion},
		{true, lts, true, TCPFileVersion},
		{true, lts, false, TCPFileVersion},
		{false, lts, false, TCPFileVersion},
		{false, "haproxy:2", true, TCPFileVersion},
	} {
		host.TCPProbe = test.tcp
		on, err := host.Write(t.Context(), []string{"10.0.0.1"}, test.image)
		if err != nil || on.Manifest != test.written || on.Version != test.version || on.Image != test.image {
			t.Errorf("%d: %v: %+v", i, err, on)
		}
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(contentOf(t, host.ManifestPath())), &pod); err != nil {
			t.Fatal(err)
		}
		probe := pod.Spec.Containers[0].LivenessProbe
		if connects := probe.HTTPGet == nil && probe.TCPSocket != nil && probe.TCPSocket.Port.IntValue() == Port; connects != (test.version == TCPFileVersion) || probe.FailureThreshold != 8 {
			t.Errorf("%d: the probe is %+v", i, probe)
		}
	}
	if written, err := WriteManifest(host.ManifestPath(), "haproxy:2"); err != nil || written {
		t.Errorf("written %v, %v", written, err)
	}
}

// TestPrimariesAreAskedBeforeAnotherConfigurationIsWritten, and not for one that is there.
func TestPrimariesAreAskedBeforeAnotherConfigurationIsWritten(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	if _, err := h.Write(t.Context(), twoPrimaries[:1], lts); err != nil {
		t.Fatal(err)
	}
	asked := []string{}
	h.AnyServes = func(primaries []string) error { asked = primaries; return errors.New("connection refused") }
	if _, err := h.WriteConfig(t.Context(), twoPrimaries[:1]); err != nil || len(asked) != 0 {
		t.Errorf("asked %q; %v", asked, err)
	}
	if _, err := h.WriteConfig(t.Context(), twoPrimaries); err == nil || len(asked) != 2 {
		t.Errorf("asked %q; %v", asked, err)
	}
	if err := os.Chmod(h.ConfigPath(), 0o600); err != nil { // its content is right
		t.Fatal(err)
	}
	if _, err := h.WriteConfig(t.Context(), twoPrimaries[:1]); err != nil {
		t.Error(err)
	}
	expectHost(t, h, twoPrimaries[:1], lts)
}

// A person may have changed the file, restarted HAProxy and kept the name of the backend, by which its log shows what it
// runs with.
func TestChangedFileGetsAnotherNameOfItsBackend(t *testing.T) {
	h := Host{Etc: t.TempDir()}
	names := map[string]bool{}
	var last string
	for range 3 {
		on, err := h.WriteConfig(t.Context(), twoPrimaries)
		if err != nil || !on.Config || on.Backend == last || Backend(contentOf(t, h.ConfigPath())) != on.Backend {
			t.Fatalf("%+v, %v, after backend %q", on, err, last)
		}
		if again, err := h.WriteConfig(t.Context(), twoPrimaries); err != nil || again.Config || again.Backend != on.Backend {
			t.Fatalf("without a change: %+v, %v", again, err)
		}
		last = on.Backend
		names[last] = true
		changed := strings.Replace(contentOf(t, h.ConfigPath()), "retries 3", "retries 4", 1)
		if err := os.WriteFile(h.ConfigPath(), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 2 {
		t.Errorf("the backends were %v", names)
	}
}
