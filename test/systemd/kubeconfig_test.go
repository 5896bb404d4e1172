package systemdtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
)

const conf = "/etc/kubernetes/"

// installed boots a machine with the kubeconfigs of a primary.
func installed(t *testing.T) *machine {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "kubelet.conf"))
	if err != nil {
		t.Fatal(err)
	}
	m := boot(t)
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		m.must("sh", "-c", `printf %s "$1" >"$2" && chmod 0640 "$2" && chown 0:12 "$2"`, "sh", string(content), conf+name)
	}
	m.must("systemctl", "restart", "kubelet")
	await.Until(t, await.HangTimeout, "the kubelet has begun", func() (bool, string) {
		said, code := m.run("cat", "/run/kubelet.servers")
		return code == 0 && strings.Contains(said, "https://10.0.0.1:6443"), said
	})
	return m
}

// kubelet is its process, 0 if there is none.
func (m *machine) kubelet() string {
	m.t.Helper()
	return strings.TrimSpace(m.must("systemctl", "show", "--value", "--property", "MainPID", "kubelet"))
}

// set has the kubelet led to a server, as a person does on a host.
func (m *machine) set(server string) (said string, code int) {
	m.t.Helper()
	return m.run("ekco", "set-kubeconfig-server", "--server="+server, "--admin")
}

// servers are those that the kubelet was started with, one after the other.
func (m *machine) servers() string {
	m.t.Helper()
	return strings.Join(strings.Fields(m.must("cat", "/run/kubelet.servers")), " ")
}

func TestTheKubeletOfAHostIsLedToAnotherServerBySystemd(t *testing.T) {
	t.Parallel()
	m := installed(t)
	before := m.kubelet()
	said, code := m.set("https://localhost:6444")
	if code != 0 || !strings.Contains(said, "kubelet.service is restarted, and active") {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	t.Log(said)
	if now := m.kubelet(); now == before || now == "0" {
		t.Errorf("the kubelet was process %s, and is %s", before, now)
	}
	if servers := m.servers(); !strings.HasSuffix(servers, "https://10.0.0.1:6443 https://localhost:6444") {
		t.Errorf("it was started with %s", servers)
	}
	content, err := os.ReadFile(filepath.Join("testdata", "kubelet.conf"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(content), "https://10.0.0.1:6443", "https://localhost:6444", 1)
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		if is := m.must("cat", conf+name); is != want {
			t.Errorf("%s is\n%s", name, is)
		}
		if mode := m.must("stat", "-c", "%a %u:%g", conf+name); mode != "640 0:12\n" {
			t.Errorf("%s has %s", name, mode)
		}
	}
	if said, code := m.set("https://localhost:6444"); code != 0 || !strings.Contains(said, "already") {
		t.Errorf("once more: exit %d:\n%s", code, said)
	}
}

func TestAKubeletThatIsStoppedIsStarted(t *testing.T) {
	t.Parallel()
	m := installed(t)
	m.must("systemctl", "stop", "kubelet")
	if said, code := m.set("https://localhost:6444"); code != 0 || m.kubelet() == "0" {
		t.Errorf("exit %d:\n%s", code, said)
	}
}

// TestAKubeletThatDoesNotComeBackIsSaid: it may have come as far as being active for a moment, each time.
func TestAKubeletThatDoesNotComeBackIsSaid(t *testing.T) {
	t.Parallel()
	m := installed(t)
	said, code := m.set("https://unusable.example.com")
	for _, want := range []string{"the server is set; run this again when the kubelet can be restarted", "kubelet.service was restarted and does not stay active: it started ", "journalctl -u kubelet.service"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	t.Log(said)
	if said, code := m.set("https://localhost:6444"); code != 0 {
		t.Errorf("with one that it can use: exit %d:\n%s", code, said)
	}
}

// TestNothingIsChangedWhereTheKubeletCouldNotBeRestarted: it would go on with what it has until somebody
// restarts it, and nobody would know why.
func TestNothingIsChangedWhereTheKubeletCouldNotBeRestarted(t *testing.T) {
	t.Parallel()
	m := installed(t)
	before := m.kubelet()
	for _, test := range []struct {
		does []string
		want string
	}{
		{[]string{"systemctl", "mask", "--runtime", "kubelet"}, "systemd cannot restart kubelet.service: its load state is masked"},
		{[]string{"systemctl", "stop", "dbus.socket", "dbus.service"}, "reach systemd over D-Bus"},
	} {
		m.must(test.does[0], test.does[1:]...)
		said, code := m.set("https://localhost:6444")
		if code != 1 || !strings.Contains(said, test.want) {
			t.Errorf("%q: exit %d:\n%s", test.does, code, said)
		}
		if is := m.must("cat", conf+"kubelet.conf"); strings.Contains(is, "localhost") {
			t.Errorf("%q: kubelet.conf is\n%s", test.does, is)
		}
	}
	if now := m.kubelet(); now != before {
		t.Errorf("the kubelet was process %s, and is %s", before, now)
	}
}
