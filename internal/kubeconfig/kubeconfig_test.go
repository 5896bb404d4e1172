package kubeconfig

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

const balancer = "https://localhost:6444"

// ofKubelet is kubelet.conf as kubeadm leaves it.
const ofKubelet = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://10.128.0.3:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: system:node:worker-1
  name: system:node:worker-1@kubernetes
current-context: system:node:worker-1@kubernetes
kind: Config
preferences: {}
users:
- name: system:node:worker-1
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`

func TestOnlyTheServersAreChanged(t *testing.T) {
	for name, test := range map[string]struct{ content, server, want string }{
		"kubeadm's": {ofKubelet, balancer, strings.Replace(ofKubelet, "https://10.128.0.3:6443", balancer, 1)},
		"several, with comments": {
			"# kept\nkind: Config\nclusters:   # all of them\n  - name: b\n    cluster:\n      server:   'https://b'   # of b\n\n  - cluster: {server: \"https://a:1\", x: ä}\n    name: a\n# the end",
			balancer,
			"# kept\nkind: Config\nclusters:   # all of them\n  - name: b\n    cluster:\n      server:   'https://localhost:6444'   # of b\n\n  - cluster: {server: \"https://localhost:6444\", x: ä}\n    name: a\n# the end",
		},
		"characters before it":   {"clusters: [{name: ä, cluster: {x: €, server: https://a}}]\n", balancer, "clusters: [{name: ä, cluster: {x: €, server: https://localhost:6444}}]\n"},
		"line ends of Windows":   {"clusters:\r\n- cluster:\r\n    server: https://a\r\n  name: a\r\n", balancer, "clusters:\r\n- cluster:\r\n    server: https://localhost:6444\r\n  name: a\r\n"},
		"JSON":                   {`{"clusters": [{"name": "a", "cluster": {"server": "https://a"}}]}`, balancer, `{"clusters": [{"name": "a", "cluster": {"server": "https://localhost:6444"}}]}`},
		"brackets in a list":     {"clusters: [{name: a, cluster: {server: https://a}}]\n", "https://[fd00::1]:6444", "clusters: [{name: a, cluster: {server: \"https://[fd00::1]:6444\"}}]\n"},
		"the server elsewhere":   {"clusters:\n- name: https://a\n  cluster: {server: https://a, proxy-url: https://a}\n", balancer, "clusters:\n- name: https://a\n  cluster: {server: https://localhost:6444, proxy-url: https://a}\n"},
		"the same":               {ofKubelet, "https://10.128.0.3:6443", ofKubelet},
		"none yet":               {"# kept\nclusters:\n- name: a\n  cluster:\n    insecure-skip-tls-verify: true # so\n", balancer, "# kept\nclusters:\n  - name: a\n    cluster:\n      insecure-skip-tls-verify: true # so\n      server: https://localhost:6444\n"},
		"an empty one":           {"clusters:\n- name: a\n  cluster:\n    server:\n", balancer, "clusters:\n  - name: a\n    cluster:\n      server: https://localhost:6444\n"},
		"anew, with a comment":   {"clusters:\n- name: a\n  cluster:\n    server: >- # mine\n      https://a\n", balancer, "clusters:\n  - name: a\n    cluster:\n      server: https://localhost:6444 # mine\n"},
		"an alias":               {"x: &x https://a\nclusters:\n- name: a\n  cluster:\n    server: *x\n", balancer, "x: &x https://a\nclusters:\n  - name: a\n    cluster:\n      server: https://localhost:6444\n"},
		"over several lines":     {"clusters:\n- name: a\n  cluster:\n    server: >-\n      https://a\n", balancer, "clusters:\n  - name: a\n    cluster:\n      server: https://localhost:6444\n"},
		"written with escapes":   {"clusters:\n- name: a\n  cluster:\n    server: \"https:\\x2f/a\"\n", balancer, "clusters:\n  - name: a\n    cluster:\n      server: https://localhost:6444\n"},
		"more than one":          {"clusters:\n- name: a\n  cluster: {server: https://a}\n---\nx: y\n", balancer, "clusters:\n- name: a\n  cluster: {server: https://localhost:6444}\n---\nx: y\n"},
		"one for two (an alias)": {"clusters:\n- name: a\n  cluster: &c {server: https://a}\n- {name: b, cluster: *c}\n", balancer, "clusters:\n- name: a\n  cluster: &c {server: https://localhost:6444}\n- {name: b, cluster: *c}\n"},
	} {
		changed, changes, err := SetServer([]byte(test.content), test.server)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, string(changed)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		again, changesAgain, err := SetServer(changed, test.server)
		if err != nil || !bytes.Equal(again, changed) || len(changes) != len(changesAgain) || changesAgain[0].From != test.server {
			t.Errorf("%s, again: %v: %s %v", name, err, again, changesAgain)
		}
	}
}

func TestWhatEachClusterHadIsTold(t *testing.T) {
	_, changes, err := SetServer([]byte("clusters:\n- {name: a, cluster: {server: https://a}}\n- {cluster: {server: http://b:80}}\n- {name: c, cluster: {x: y}}\n"), balancer)
	if diff := cmp.Diff([]Change{{"a", "https://a"}, {"", "http://b:80"}, {"c", ""}}, changes); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestPasswordIsRedacted(t *testing.T) {
	for server, want := range map[string]string{
		"https://admin:hunter2@lb:6443/p":  "https://REDACTED@lb:6443/p",
		"https://adm@in:hunter2@lb":        "https://REDACTED@lb",
		"admin:hunter2@lb":                 "REDACTED@lb",
		"admin:hunter2@https://lb":         "REDACTED@https://lb",
		"https://lb.example.com:6443/path": "https://lb.example.com:6443/path",
		"https://lb/?token=hunter2":        "https://lb/?REDACTED",
		"https://lb/#hunter2":              "https://lb/#REDACTED",
		"https://lb/?token=hunter2@a":      "https://REDACTED@a",
		"https://a:hunter2@lb?t=hunter2":   "https://REDACTED@lb?REDACTED",
		"https://a:hun?ter2@lb":            "https://REDACTED@lb",
	} {
		_, changes, err := SetServer([]byte("clusters:\n- {name: a, cluster: {server: \""+server+"\"}}\n"), balancer)
		if diff := cmp.Diff([]Change{{"a", want}}, changes); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		if err := CheckServer(server); want != server && (err == nil || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsNoKubeconfigIsAnError(t *testing.T) {
	for content, want := range map[string]string{
		"":                           "it is empty",
		"# nothing\n":                "it is empty",
		"text":                       "no list of clusters",
		"- a\n":                      "no list of clusters",
		"a: [\n":                     "read the YAML",
		"kind: Pod\nclusters: []\n":  `its kind is "Pod"`,
		"kind: Config\n":             "no list of clusters",
		"clusters:\n":                "no list of clusters",
		"clusters: []\n":             "no list of clusters",
		"clusters: {a: b}\n":         "no list of clusters",
		"clusters: [a]\n":            "entry 1 of its clusters has no cluster",
		"clusters: [{name: a}]\n":    "entry 1 of its clusters has no cluster",
		"clusters: [{cluster: a}]\n": "entry 1 of its clusters has no cluster",
		"clusters: [{name: a, cluster: {server: [b]}}]\n":                 "the server of cluster \"a\" is not a string",
		"clusters: [{cluster: {server: https://a, server: https://b}}]\n": "already defined",
		// What has to be written again would lose all after the first.
		"clusters:\n- name: a\n  cluster: {x: y}\n---\nx: y\n":   "it has more than one document",
		"users: 5\nclusters: [{cluster: {server: https://a}}]\n": "it is not a kubeconfig",
	} {
		if changed, _, err := SetServer([]byte(content), balancer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %s", content, err, changed)
		}
	}
}

func TestWhatIsNoServerIsAnError(t *testing.T) {
	for server, want := range map[string]string{
		"": "no scheme", "localhost:6444": "no scheme", "10.0.0.1": "no scheme", "//a": "no scheme", "ftp://a": "its scheme is not https", "http://a": "its scheme is not https", "HTTPS://a": "its scheme is not https",
		"https://": "no host", "https://:6444": "no host", "https:///a": "no host", "https://a b": "not a URL", "https://a\nb": "not a URL",
		"https://fd00::1:6444": "", "https://[fd00::1": "not a URL", "https://[a:b]": "", "https://[fd00::1%25eth0]": "not an address",
		"https://a:x": "not a URL", "https://a:": "port is missing", "https://a:0": "port is invalid", "https://a:65536": "port is invalid",
		"https://u:p@a": "more than a host", "https://a?b": "more than a host", "https://a#b": "more than a host", "https://a,https://b": "", "https://a'b": "more than", `https://a"b`: "",
	} {
		err := CheckServer(server)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", server, err)
		}
		if _, _, by := SetServer([]byte(ofKubelet), server); by == nil || err != nil && by.Error() != err.Error() {
			t.Errorf("%q: %v", server, by)
		}
	}
	for _, server := range []string{balancer, "https://lb.example.com", "https://10.0.0.1:8080", "https://[fd00::1]", "https://[fd00::1]:6444", "https://a/k8s/clusters/c-1", "https://A-1.example.com:443/"} {
		if err := CheckServer(server); err != nil {
			t.Error(err)
		}
	}
}

// FuzzAKubeconfigHasTheServerAndAllElseOrIsAnError: nothing in it makes it change more.
func FuzzAKubeconfigHasTheServerAndAllElseOrIsAnError(f *testing.F) {
	for _, content := range []string{
		ofKubelet, "", "clusters: [{cluster: {server: https://a}}]", "clusters:\n- name: a\n  cluster:\n    server: >-\n      https://a\n", "x: &x {server: https://a}\nclusters:\n- {cluster: {<<: *x}}\n",
		"\ufeffclusters:\n- cluster: {server: 'https://a'}\n", "clusters:\u2028- cluster:\u2028    server: https://a\n", "clusters: [{cluster: {server: !!str https://a}}]", "clusters: &c [{cluster: {server: &s https://a}}, {cluster: {server: *s}}]\nx: *s\n",
	} {
		f.Add([]byte(content), "https://[::1]:6444")
		f.Add([]byte(content), balancer)
	}
	f.Fuzz(func(t *testing.T, content []byte, server string) {
		changed, changes, err := SetServer(content, server)
		if err != nil {
			if changed != nil || changes != nil {
				t.Fatalf("%v, and %q", err, changed)
			}
			return
		}
		config, err := clientcmd.Load(changed)
		if err != nil || len(changes) == 0 {
			t.Fatalf("%v: %q", err, changed)
		}
		for name, cluster := range config.Clusters {
			if cluster.Server != server {
				t.Fatalf("cluster %q has %q in %q", name, cluster.Server, changed)
			}
		}
		if again, _, err := SetServer(changed, server); err != nil || !bytes.Equal(again, changed) {
			t.Fatalf("again: %v: %q, then %q", err, changed, again)
		}
	})
}
