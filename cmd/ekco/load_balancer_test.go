package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/test/await"
)

// TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten, the manifest only where an image is given.
func TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten(t *testing.T) {
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	for _, test := range []struct{ image, want string }{
		{"", `ekco-outcome {"result":{"backend":"kubernetes-primaries-`},
		{"--image=haproxy:1", `"image":"haproxy:1","version":"0","manifest":true}}`},
		{"--image=haproxy:2 --keep-manifest", `"image":"haproxy:1","version":"0"}}`},
		{"--image=haproxy:2 --tcp-probe", `"image":"haproxy:2","version":"0-tcp","manifest":true}}`},
		{"--image=a b", `ekco-outcome {"failed":"image \"a b\" is none`},
	} {
		args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,fd00::2"}
		if test.image != "" {
			image, keep, kept := strings.Cut(test.image, " --")
			if args = append(args, image); kept {
				args = append(args, "--"+keep)
			}
		}
		d.expect(d.types(args...), exitDone, test.want, "")
		if strings.Count(d.out.String(), "\n") != 1 || d.errOut.Len() != 0 {
			t.Errorf("it says %s%s", d.out, d.errOut)
		}
		if test.image == "" {
			if _, err := os.Stat(host.ManifestPath()); !os.IsNotExist(err) {
				t.Errorf("the manifest: %v", err)
			}
		}
	}
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || strings.Count(string(config), "\n    server ") != 2 {
		t.Errorf("%v: %s", err, config)
	}
}

// TestHostTaskThatIsEndedRestoresHAProxysFiles: no API server answers through HAProxy here.
func TestHostTaskThatIsEndedRestoresHAProxysFiles(t *testing.T) {
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	if _, err := host.Write(t.Context(), []string{"10.0.0.1"}, "haproxy:1"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	if err := os.WriteFile(filepath.Join(host.Etc, "kubernetes", "kubelet.conf"), []byte(kubeletOf(server, "https://localhost:6444")), 0o600); err != nil {
		t.Fatal(err)
	}
	var before [2][]byte
	for i, path := range []string{host.ConfigPath(), host.ManifestPath()} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before[i] = content
	}
	var ending sync.WaitGroup
	defer ending.Wait()
	ending.Go(func() {
		await.Until(t, await.HangTimeout, "the new manifest is there", func() (bool, string) {
			content, err := os.ReadFile(host.ManifestPath())
			return strings.Contains(string(content), "haproxy:2"), fmt.Sprint(err)
		})
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,10.0.0.2", "--image=haproxy:2", "--trial=1h"}
	d.expect(d.types(args...), exitDone, `ekco-outcome {"failed":"HAProxy with image haproxy:2 was not confirmed to work`, "")
	for i, path := range []string{host.ConfigPath(), host.ManifestPath()} {
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, before[i]) {
			t.Errorf("%v: %s has %s", err, path, content)
		}
	}
}

// TestAHostThatNoPrimaryAnswersKeepsItsConfiguration: HAProxy would cut it off.
func TestAHostThatNoPrimaryAnswersKeepsItsConfiguration(t *testing.T) {
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	if _, err := host.Write(t.Context(), []string{"10.0.0.1"}, "haproxy:1"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	if err := os.WriteFile(filepath.Join(host.Etc, "kubernetes", "kubelet.conf"), []byte(kubeletOf(server, "https://localhost:6444")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=127.0.0.1", "--ask-first"}
	d.expect(d.types(args...), exitDone, `ekco-outcome {"failed":"write `+host.ConfigPath()+`: no API server answers this node at 127.0.0.1:6443`, "")
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || !strings.Contains(string(config), "10.0.0.1:6443") {
		t.Errorf("%v: %s", err, config)
	}
}
