package nodetest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/loopback"
)

// leadToAPIServer has port 6443 of an address lead to an API server from the node, as it does on a
// primary, or with "-D" no longer. What is connected stays so.
func (w *balanced) leadToAPIServer(t *testing.T, verb, address string, to *forwarder) {
	t.Helper()
	for _, chain := range []string{"OUTPUT", "PREROUTING"} {
		command := w.node.command("iptables", "-t", "nat", verb, chain, "-p", "tcp", "-d", address, "--dport", "6443",
			"-j", "DNAT", "--to-destination", fmt.Sprintf("%s:%d", gateway, to.port()))
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
}

// another starts one more API server of the cluster, with the same etcd, and returns where it listens.
func (w *balanced) another(t *testing.T) (server *child.Process, address string) {
	t.Helper()
	found := processes(t, func(command string, _ []byte) bool {
		return strings.HasPrefix(command, binaries.controlplane+" kube-apiserver ") && strings.Contains(command, w.dir)
	})
	if len(found) != 1 {
		t.Fatalf("API servers of the cluster are the processes %v", found)
	}
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(found[0]), "cmdline"))
	if err != nil {
		t.Fatal(err)
	}
	// An address of its own: ports of 127.0.0.1 may be given to outgoing connections meanwhile.
	ip := loopback.Network() + "1"
	args := strings.Split(strings.TrimRight(string(content), "\x00"), "\x00")
	return child.Start(t, args[0], append(args[1:], "--bind-address="+ip, "--secure-port=6443")...), ip + ":6443" // the last ones count
}

// internalIP returns the InternalIP of a node.
func (w *balanced) internalIP(t *testing.T, name string) (ip string) {
	t.Helper()
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range node.Status.Addresses {
		if of.Type == corev1.NodeInternalIP {
			ip = of.Address
		}
	}
	return ip
}

// joins adds a simulated primary whose address leads to an API server. EKCO has given up its load balancer afterwards.
func (w *balanced) joins(t *testing.T, primary string, to *forwarder) {
	t.Helper()
	add := exec.CommandContext(t.Context(), binaries.controlplane, "node", "add", primary, "--role", "primary", "--dir", w.dir)
	if output, err := add.CombinedOutput(); err != nil {
		t.Fatalf("add %s: %v: %s", primary, err, output)
	}
	w.leadToAPIServer(t, "-I", w.internalIP(t, primary), to)
	w.mustEkco(t, "cancel", w.begun(t, primary))
}

// drops has the node drop packets to HAProxy's port, or with "-D" no longer. more says which.
func (w *balanced) drops(t *testing.T, verb string, more ...string) {
	t.Helper()
	args := append([]string{"iptables", verb, "INPUT", "-p", "tcp", "--dport", "6444", "-j", "DROP"}, more...)
	if output, err := w.node.command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// passesOverADeadAPIServer adds a second API server to HAProxy and then kills it. No request may fail once
// HAProxy has noticed.
func (w *balanced) passesOverADeadAPIServer(t *testing.T, primary string) {
	t.Helper()
	server, address := w.another(t)
	second := startForwarder(t, address)
	w.joins(t, primary, second)
	w.serves(t, haproxyImages[0], 2)

	before := w.found(t, "DOWN")
	w.leadToAPIServer(t, "-D", w.node.network.address(), w.forwarder)
	await.Until(t, await.HangTimeout, "the second API server alone is asked", func() (bool, string) {
		err := w.asked()
		return err == nil && w.found(t, "DOWN") > before, fmt.Sprintf("%v; it says %s", err, server.Output.Tail(500))
	})
	before = w.found(t, "UP")
	w.leadToAPIServer(t, "-I", w.node.network.address(), w.forwarder)
	await.Until(t, await.HangTimeout, "HAProxy leads to both", func() (bool, string) {
		now := w.found(t, "UP")
		return now > before, fmt.Sprint(now)
	})
	before = w.found(t, "DOWN")
	server.Kill()
	await.Until(t, await.HangTimeout, "HAProxy has noticed", func() (bool, string) {
		err := w.asked() // a request also makes HAProxy notice; it may fail until then
		return w.found(t, "DOWN") > before, fmt.Sprint(err)
	})
	for answered := 0; answered < 20; answered++ {
		before = w.found(t, "DOWN")
		err := w.asked()
		if err == nil {
			continue
		}
		// On a busy machine the other server's answers to checks may be late, too. Only then may a request fail.
		await.Until(t, await.HangTimeout, "HAProxy says that it found the other API server down", func() (bool, string) {
			return w.found(t, "DOWN") > before, err.Error()
		})
		answered = -1
	}
}

// found is how often HAProxy said that a server is "UP" again, or "DOWN".
func (w *balanced) found(t *testing.T, state string) (times int) {
	t.Helper()
	logs, err := filepath.Glob(w.node.Disk("var/log/pods/kube-system_haproxy-real-1_*/haproxy/*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		times += strings.Count(string(content), "is "+state)
	}
	return times
}

// asked asks an API server through HAProxy on a connection of its own.
func (w *balanced) asked() error {
	client := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get(fmt.Sprintf("https://%s:6444/readyz", w.node.network.address()))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// watched is a watch through HAProxy.
type watched struct {
	*balanced
	watch  watch.Interface
	number int
}

// watch watches a ConfigMap that only this test changes, over HTTP/1.1: an HTTP/2 client closes the connection if a
// busy server misses a ping.
func (w *balanced) watch(t *testing.T) *watched {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(w.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.Host = fmt.Sprintf("https://%s:6444", w.node.network.address())
	config.NextProtos = []string{"http/1.1"}
	config.ServerName = "kubernetes" // the API server's certificate does not know the node's address
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Kubectl(t, "--namespace", "default", "create", "configmap", "seen", "--from-literal=number=0")
	begun, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=seen"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(begun.Stop)
	return &watched{balanced: w, watch: begun}
}

// sees changes the ConfigMap and waits until the same watch reports it.
func (w *watched) sees(t *testing.T) {
	t.Helper()
	w.number++
	want := strconv.Itoa(w.number)
	w.Kubectl(t, "--namespace", "default", "patch", "configmap", "seen", "--patch", `{"data": {"number": "`+want+`"}}`)
	late := time.NewTimer(await.HangTimeout)
	defer late.Stop()
	for {
		select {
		case event, open := <-w.watch.ResultChan():
			if !open {
				t.Fatal("the watch through HAProxy was cut")
			}
			if seen, is := event.Object.(*corev1.ConfigMap); is && seen.Data["number"] == want {
				return
			}
		case <-late.C:
			t.Fatalf("the watch through HAProxy has not seen change %s", want)
		}
	}
}
