package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// execServer returns a client of the exec server with the identity of the pair
// NAME.crt and NAME.key in DIR/pki, or with none, and the server's URL.
func execServer(t *testing.T, dir, name string) (*http.Client, string) {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	ca, err := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	config.RootCAs.AppendCertsFromPEM(ca)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "pki", name+".crt"), filepath.Join(dir, "pki", name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}, fmt.Sprintf("https://127.0.0.1:%s", port(t, dir, "exec-server"))
}

// port reads the documented list of ports.
func port(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ports"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+"="); found {
			return value
		}
	}
	t.Fatalf("no port of %s in %s", name, data)
	return ""
}

// askExecServer asks, as the API server, for an exec into a pod that is not
// there, and returns the answer.
func askExecServer(t *testing.T, dir string) string {
	t.Helper()
	client, url := execServer(t, dir, "apiserver-kubelet-client")
	response, err := client.Post(url+"/exec/demo/none/app?command=echo&output=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func execServerTrusts(t *testing.T, p program) {
	if said := askExecServer(t, p.dir); !strings.Contains(said, "does not exist") {
		t.Errorf("to the API server it said %q", said)
	}
	for name, want := range map[string]string{"": "certificate required", "etcd": "bad certificate"} {
		client, url := execServer(t, p.dir, name)
		response, err := client.Get(url)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with certificate %q the answer is %v: want %q", name, err, want)
		}
	}
}
