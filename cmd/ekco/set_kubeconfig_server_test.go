package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/systemd/systemdtest"
)

const (
	anyKubeconfig = "# of the kubelet\nclusters:\n- name: kubernetes\n  cluster: {server: \"https://10.0.0.1:6443\"}\nkind: Config\n"
	toBalancer    = "--server=https://localhost:6444"
)

// hostOf is a host with a kubelet and kubeconfigs, whose D-Bus the desk's program finds.
func hostOf(t *testing.T, d *desk, units ...string) (etc string, host *systemdtest.Systemd) {
	t.Helper()
	etc, host = filepath.Join(d.dir, "etc"), systemdtest.Start(t, units...)
	if err := os.MkdirAll(filepath.Join(etc, "kubernetes"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		if err := os.WriteFile(filepath.Join(etc, "kubernetes", name), []byte(anyKubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.app.kubeletMinActiveTime = time.Millisecond
	before := d.app.env
	d.app.env = func(name string) (string, bool) {
		if name == envSystemBus {
			return host.Address, true
		}
		return before(name)
	}
	return etc, host
}

// serversIn is what the kubeconfigs have.
func serversIn(t *testing.T, etc string) map[string]string {
	t.Helper()
	servers := map[string]string{}
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		content, err := os.ReadFile(filepath.Join(etc, "kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(content), `server: "`)
		server, rest, _ := strings.Cut(after, `"`)
		servers[name] = server
		if !strings.HasPrefix(string(content), "# of the kubelet\n") || rest != "}\nkind: Config\n" {
			t.Errorf("%s has %s", name, content)
		}
	}
	return servers
}

func TestTheKubeletIsLedElsewhereAndRestarted(t *testing.T) {
	d := newDesk(t, nil)
	etc, host := hostOf(t, d, kubelet)
	path := filepath.Join(etc, "kubernetes", "kubelet.conf")
	d.expect(d.types("set-kubeconfig-server", toBalancer, "--host-etc-dir="+etc), exitDone,
		path+": cluster \"kubernetes\" has server https://localhost:6444, had \"https://10.0.0.1:6443\"\nkubelet.service is restarted, and active\n", "")
	if got := serversIn(t, etc); got["kubelet.conf"] != "https://localhost:6444" || got["admin.conf"] != "https://10.0.0.1:6443" {
		t.Errorf("they have %v", got)
	}
	d.expect(d.types("set-kubeconfig-server", "--admin=true", toBalancer, "--host_etc_dir", etc), exitDone,
		path+": cluster \"kubernetes\" has server https://localhost:6444 already\n"+
			filepath.Join(etc, "kubernetes", "admin.conf")+": cluster \"kubernetes\" has server https://localhost:6444, had", "")
	if got := serversIn(t, etc); got["admin.conf"] != "https://localhost:6444" {
		t.Errorf("they have %v", got)
	}
	if restarts := host.Restarts(); len(restarts) != 2 || restarts[0] != kubelet {
		t.Errorf("it restarted %v", restarts)
	}
}

func TestWhatIsMissingIsSaidBeforeAnythingIsChanged(t *testing.T) {
	for want, test := range map[string]struct {
		args    []string
		code    int
		prepare func(d *desk, etc string) error
		units   []string
	}{
		"give the API server's address":                {code: exitUsage},
		`invalid server "localhost:6444": it has no s`: {args: []string{"--server=localhost:6444"}, code: exitUsage},
		`invalid server "https://": it has no host`:    {args: []string{"--server=https://"}, code: exitUsage},
		"takes no argument":                            {args: []string{toBalancer, "x"}, code: exitUsage},
		"systemd cannot restart kubelet.service":       {args: []string{toBalancer}, code: exitFailed},
		"reach systemd over D-Bus": {args: []string{toBalancer}, code: exitFailed, prepare: func(d *desk, etc string) error {
			d.app.env = func(name string) (string, bool) { return "unix:path=" + etc + "/none", name == envSystemBus }
			return nil
		}},
		"admin.conf: it is empty": {args: []string{toBalancer, "--admin"}, code: exitFailed, units: []string{kubelet}, prepare: func(_ *desk, etc string) error { return os.Truncate(filepath.Join(etc, "kubernetes", "admin.conf"), 0) }},
		"admin.conf: lstat":       {args: []string{toBalancer, "--admin"}, code: exitFailed, units: []string{kubelet}, prepare: func(_ *desk, etc string) error { return os.Remove(filepath.Join(etc, "kubernetes", "admin.conf")) }},
		"kubelet.conf is a link that points out of": {args: []string{toBalancer}, code: exitFailed, units: []string{kubelet}, prepare: func(_ *desk, etc string) error {
			path := filepath.Join(etc, "kubernetes", "kubelet.conf")
			return errors.Join(os.Rename(path, etc+"2"), os.Symlink(etc+"2", path))
		}},
	} {
		d := newDesk(t, nil)
		etc, host := hostOf(t, d, test.units...)
		if test.prepare != nil {
			if err := test.prepare(d, etc); err != nil {
				t.Fatal(err)
			}
		}
		d.expect(d.types(append([]string{"set-kubeconfig-server", "--host-etc-dir=" + etc}, test.args...)...), test.code, "", want)
		content, err := os.ReadFile(filepath.Join(etc, "kubernetes", "kubelet.conf"))
		if err != nil || string(content) != anyKubeconfig || len(host.Restarts()) > 0 || d.out.Len() > 0 {
			t.Errorf("%s: %v: %s\nrestarted %v, said %s", want, err, content, host.Restarts(), d.out)
		}
	}
}

func TestAKubeletThatIsNotActiveAgainIsAFailureAndWhatToDoIsSaid(t *testing.T) {
	d := newDesk(t, nil)
	etc, host := hostOf(t, d, kubelet)
	down := systemdtest.Running()
	down.Active, down.Sub, down.Result = "failed", "failed", "exit-code"
	host.AfterRestart(kubelet, down)
	d.expect(d.types("set-kubeconfig-server", toBalancer, "--host-etc-dir="+etc), exitFailed, "",
		"the server is set; run this again when the kubelet can be restarted: kubelet.service was restarted and is failed (failed), result exit-code; see journalctl -u kubelet.service")
	d.expect(d.types("set-kubeconfig-server", toBalancer, "--host-etc-dir="+etc), exitDone, "already\nkubelet.service is restarted, and active\n", "")
}

func TestWithoutTheRightToTheKubeconfigItSaysToRunItAsRoot(t *testing.T) {
	d := newDesk(t, nil)
	etc, _ := hostOf(t, d, kubelet)
	if err := os.Chmod(etc, fs.ModeDir|0o755); err != nil {
		t.Fatal(err)
	}
	asNobody(t, filepath.Join(etc, "kubernetes"), func() {
		d.expect(d.types("set-kubeconfig-server", toBalancer, "--host-etc-dir="+etc), exitFailed, "", "permission denied; run this as root")
	})
}

// TestHostTaskPointsTheKubeletToAServerThatAnswers: it asks that server with the kubelet's credentials.
func TestHostTaskPointsTheKubeletToAServerThatAnswers(t *testing.T) {
	d := newDesk(t, nil)
	etc, host := hostOf(t, d, kubelet)
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if want := "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1"; r.URL.Path != want || r.Header.Get("Authorization") != "Bearer mine" {
			t.Errorf("it asks for %s as %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		renewed := metav1.NewMicroTime(time.Now().Add(time.Hour))
		if err := json.NewEncoder(w).Encode(coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := kubeletOf(server, "https://10.0.0.1:6443")
	if err := os.WriteFile(filepath.Join(etc, "kubernetes", "kubelet.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	task := []string{hostTaskCommand, hostTaskKubeconfigs, "--server=" + server.URL, "--host-etc-dir=" + etc, actionsbalancer.Confirm}
	env := d.app.env
	d.app.env = func(name string) (string, bool) {
		if name == hosttask.EnvNode {
			return "", false
		}
		return env(name)
	}
	d.expect(d.types(task...), exitDone, `ekco-outcome {"failed":"HOSTNAME is not set, want the name of the node"}`, "")
	bus := "unix:path=" + filepath.Join(etc, "none")
	d.app.env = func(name string) (string, bool) {
		switch {
		case name == hosttask.EnvNode:
			return "worker-1", true
		case name == envSystemBus && bus != "":
			return bus, true
		}
		return env(name)
	}
	d.expect(d.types(task...), exitDone, `ekco-outcome {"failed":`, "")
	if asked.Load() != 0 {
		t.Error("it goes on without a systemd that can restart the kubelet")
	}
	bus = ""
	d.expect(d.types(task...), exitDone, `ekco-outcome {"result":{"files":[{"path":"/etc/kubernetes/kubelet.conf","cluster":"kubernetes","from":"https://10.0.0.1:6443"}]}}`, "")
	content, err := os.ReadFile(filepath.Join(etc, "kubernetes", "kubelet.conf"))
	if err != nil || string(content) != strings.Replace(config, "https://10.0.0.1:6443", server.URL, 1) || len(host.Restarts()) != 1 {
		t.Errorf("%v: restarted %v: %s", err, host.Restarts(), content)
	}
}

// TestHostTaskThatIsEndedRestoresTheFormerServer: a kubelet that does not work with the new one cannot be told to.
func TestHostTaskThatIsEndedRestoresTheFormerServer(t *testing.T) {
	d := newDesk(t, nil)
	etc, host := hostOf(t, d, kubelet)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if len(host.Restarts()) == 1 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		renewed := metav1.NewMicroTime(time.Now().Add(-time.Hour)) // the kubelet has not reached it since
		if err := json.NewEncoder(w).Encode(coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := kubeletOf(server, "https://10.0.0.1:6443")
	if err := os.WriteFile(filepath.Join(etc, "kubernetes", "kubelet.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := d.app.env
	d.app.env = func(name string) (string, bool) {
		if name == hosttask.EnvNode {
			return "worker-1", true
		}
		return env(name)
	}
	d.expect(d.types(hostTaskCommand, hostTaskKubeconfigs, "--server="+server.URL, "--host-etc-dir="+etc, actionsbalancer.Confirm), exitDone, `ekco-outcome {"failed":`, "")
	content, err := os.ReadFile(filepath.Join(etc, "kubernetes", "kubelet.conf"))
	if err != nil || string(content) != config || len(host.Restarts()) != 2 {
		t.Errorf("%v: restarted %v: %s", err, host.Restarts(), content)
	}
}

// kubeletOf is a kubeconfig with the CA of a server, for another address.
func kubeletOf(server *httptest.Server, address string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return "clusters:\n- name: kubernetes\n  cluster: {server: \"" + address + "\", certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca) +
		"}\ncontexts: [{name: c, context: {cluster: kubernetes, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {token: mine}}]\n"
}
