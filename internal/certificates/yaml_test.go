package certificates

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func kubeconfigOf(p pki) string {
	data := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: https://10.0.0.1:6443
  name: kubernetes
contexts: []
kind: Config
users:
- name: system:kube-scheduler
  user:
    client-certificate-data: %s
    client-key-data: %s
`, data(p.caFile.Content), data(p.leafFile.Content), data(p.leafKeyOf.Content))
}

func TestAKubeconfigHasItsPairAndItsCA(t *testing.T) {
	p := newPKI(t, "leaf", now.Add(Year))
	config, err := File{"scheduler.conf", []byte(kubeconfigOf(p))}.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	chain, _, err := Pair(config.Certificate, config.Key)
	if err != nil || !chain[0].Equal(p.leaf) || config.User != "system:kube-scheduler" || config.Server != "https://10.0.0.1:6443" {
		t.Errorf("%v: %+v", err, config.User)
	}
	if ca, err := config.CA.OneCertificate(); err != nil || !ca.Equal(p.ca.Certificate) {
		t.Error(err)
	}
	if _, _, err := Pair(config.Certificate, p.otherKeyOf); err == nil || !strings.Contains(err.Error(), "scheduler.conf (client-certificate-data)") {
		t.Errorf("got %v", err)
	}
}

func TestAKubeconfigThatIsNotAsItShouldBeIsRefusedWithoutQuotingIt(t *testing.T) {
	whole := kubeconfigOf(newPKI(t, "leaf", now.Add(Year)))
	userless, _, _ := strings.Cut(whole, "users:")
	for want, content := range map[string]string{
		"it is empty":                    "",
		"it is not a kubeconfig":         "{",
		"its kind is not Config":         strings.Replace(whole, "kind: Config", "kind: Pod", 1),
		"0 users and 1 clusters":         userless,
		"client-key-data is missing":     strings.Replace(whole, "client-key-data", "client-key-datum", 1),
		"client-certificate-data is mis": strings.Replace(whole, "client-certificate-data: ", "client-certificate-data: '!secret'\n    x: ", 1),
		"in another file":                strings.Replace(whole, "client-certificate-data", "client-certificate", 1),
		"not a kubeconfig":               whole + "---\n" + whole,
	} {
		_, err := File{"x.conf", []byte(content)}.Kubeconfig()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.conf") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAKubeconfigGetsAnotherPairAndNothingElse(t *testing.T) {
	p, other := newPKI(t, "leaf", now.Add(Year)), newPKI(t, "other", now.Add(Year))
	whole := kubeconfigOf(p)
	want := kubeconfigOf(p)
	encode := base64.StdEncoding.EncodeToString
	for _, part := range [][2][]byte{{p.leafFile.Content, other.leafFile.Content}, {p.leafKeyOf.Content, other.leafKeyOf.Content}} {
		want = strings.ReplaceAll(want, encode(part[0]), encode(part[1]))
	}
	got, err := File{"x.conf", []byte(whole)}.WithPair(other.leafFile.Content, other.leafKeyOf.Content)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	key := encode(p.leafKeyOf.Content)
	for name, content := range map[string]string{
		"the key in two lines":     strings.Replace(whole, key, "\""+key[:9]+"\\\n      "+key[9:]+"\"", 1),
		"the key in a comment too": whole + "# " + key + "\n",
	} {
		got, err := File{"x.conf", []byte(content)}.WithPair(other.leafFile.Content, other.leafKeyOf.Content)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read, err := File{"x.conf", got}.Kubeconfig()
		if err != nil || read.Server != "https://10.0.0.1:6443" || string(read.CA.Content) != string(p.caFile.Content) {
			t.Errorf("%s: %v: %+v", name, err, read)
		}
		if _, _, err := Pair(read.Certificate, read.Key); err != nil || string(read.Key.Content) != string(other.leafKeyOf.Content) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withAnother returns a kubeconfig of two users, two clusters and two contexts, of which the current
// one is that of the scheduler; both users have the same pair if so asked.
func withAnother(t *testing.T, p pki, samePair bool) string {
	t.Helper()
	another := kubeconfigOf(newPKI(t, "other", now.Add(Year)))
	if samePair {
		another = kubeconfigOf(p)
	}
	another = strings.NewReplacer("system:kube-scheduler", "oidc", "name: kubernetes", "name: elsewhere", "10.0.0.1", "10.9.9.9").Replace(another)
	_, clusters, _ := strings.Cut(another, "clusters:\n")
	clusters, users, _ := strings.Cut(clusters, "contexts: []\nkind: Config\nusers:\n")
	const contexts = `contexts:
- context: {cluster: elsewhere, user: oidc}
  name: a
- context: {cluster: kubernetes, user: "system:kube-scheduler"}
  name: b
current-context: b
`
	return strings.NewReplacer("clusters:\n", "clusters:\n"+clusters, "contexts: []\n", contexts, "users:\n", "users:\n"+users).Replace(kubeconfigOf(p))
}

func TestCurrentContextSelectsUser(t *testing.T) {
	p, other := newPKI(t, "leaf", now.Add(Year)), newPKI(t, "leaf", now.Add(2*Year))
	for _, samePair := range []bool{false, true} {
		whole := withAnother(t, p, samePair)
		read, err := File{"admin.conf", []byte(whole)}.Kubeconfig()
		if err != nil || len(read.Others) != 1 || read.User != "system:kube-scheduler" || read.Server != "https://10.0.0.1:6443" || string(read.Key.Content) != string(p.leafKeyOf.Content) {
			t.Fatalf("%v: %+v", err, read)
		}
		made, err := File{"admin.conf", []byte(whole)}.WithPair(other.leafFile.Content, other.leafKeyOf.Content)
		if err != nil {
			t.Fatal(err)
		}
		after, err := File{"admin.conf", made}.Kubeconfig()
		if err != nil || string(after.Key.Content) != string(other.leafKeyOf.Content) || string(after.Certificate.Content) != string(other.leafFile.Content) {
			t.Errorf("%v: %+v", err, after)
		}
		elsewhere := func(of string) string { return strings.Replace(of, "current-context: b", "current-context: a", 1) }
		was, errWas := File{"admin.conf", []byte(elsewhere(whole))}.Kubeconfig()
		is, errIs := File{"admin.conf", []byte(elsewhere(string(made)))}.Kubeconfig()
		was.Others, is.Others = nil, nil
		if diff := cmp.Diff(was, is); errWas != nil || errIs != nil || diff != "" || is.User != "oidc" {
			t.Errorf("%v, %v: the other user has changed: %s", errWas, errIs, diff)
		}
	}
	for _, current := range []string{"c", "", "a, b"} {
		content := strings.Replace(withAnother(t, p, false), "current-context: b", "current-context: \""+current+"\"", 1)
		if _, err := (File{"admin.conf", []byte(content)}).Kubeconfig(); err == nil || !strings.Contains(err.Error(), "2 users and 2 clusters") {
			t.Errorf("%q: %v", current, err)
		}
	}
}

func TestAManifestSaysWhereItsPodIsAskedWhetherItIsWell(t *testing.T) {
	for want, probes := range map[string]string{
		"":                                "",
		"https://127.0.0.1:10259/healthz": "    livenessProbe: {httpGet: {host: 127.0.0.1, path: /healthz, port: 10259, scheme: HTTPS}}\n",
		"http://127.0.0.1:2381/readyz?exclude=etcd&verbose": "    livenessProbe: {httpGet: {path: \"/readyz?exclude=etcd&verbose\", port: 2381}}\n",
		"http://127.0.0.1:2381/a%2Fb":                       "    livenessProbe: {httpGet: {path: /a%2Fb, port: 2381}}\n",
		"http://127.0.0.1:2381/%25zz":                       "    livenessProbe: {httpGet: {path: /%zz, port: 2381}}\n",
		"http://127.0.0.1:2381/health":                      "    livenessProbe: {httpGet: {path: /health, port: 2381}}\n",
		"https://10.0.0.1:6443/readyz": "    ports: [{name: probe-port, containerPort: 6443}]\n    livenessProbe: {httpGet: {path: /livez, port: 1}}\n" +
			"    readinessProbe: {httpGet: {host: 10.0.0.1, path: /readyz, port: probe-port, scheme: HTTPS}}\n",
	} {
		read, err := File{"m.yaml", []byte(strings.Replace(manifest, "    name: kube-apiserver\nstatus", "    name: kube-apiserver\n"+probes+"status", 1))}.Manifest()
		if err != nil || len(read.Containers) != 1 || read.Containers[0].Probe != want || read.Containers[0].Name != "kube-apiserver" {
			t.Errorf("%v: %+v, want %q", err, read.Containers, want)
		}
	}
}

func TestAComponentIsTheContainerOfItsName(t *testing.T) {
	for want, containers := range map[string][]string{
		"kube-apiserver": {"sidecar", "kube-apiserver", "another"},
		"renamed":        {"renamed"},
		"":               {"sidecar", "renamed"},
	} {
		of := Manifest{Name: "kube-apiserver"}
		for _, name := range containers {
			of.Containers = append(of.Containers, Container{Name: name})
		}
		if found, err := of.Component("kube-apiserver"); found.Name != want || (err == nil) != (want != "") {
			t.Errorf("%q: it is %q, %v", containers, found.Name, err)
		}
	}
	if _, err := (Manifest{}).Component("kube-apiserver"); err == nil {
		t.Error("a component without containers")
	}
}

const manifest = `# made by kubeadm
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443
  name: kube-apiserver
  namespace: kube-system
spec:
  containers:
  - command: [kube-apiserver, --v=2]
    name: kube-apiserver
status: {}
`

func TestAManifestGetsAnAnnotationAndNothingElse(t *testing.T) {
	const key = "ekco.kurl.sh/certificates"
	for name, content := range map[string]string{
		"with annotations":       manifest,
		"without":                strings.Replace(manifest, "  annotations:\n    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443\n", "", 1),
		"with none":              strings.Replace(manifest, "annotations:\n    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443", "annotations:", 1),
		"with an earlier one":    strings.Replace(manifest, "annotations:", "annotations:\n    "+key+": before", 1),
		"in JSON, which is YAML": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"kube-apiserver","namespace":"kube-system"}}`,
	} {
		before, err := File{"m.yaml", []byte(content)}.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		changed, err := File{"m.yaml", []byte(content)}.Annotated(key, "2026")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		after, err := File{"m.yaml", changed}.Manifest()
		if err != nil || after.Annotations[key] != "2026" || after.Name != "kube-apiserver" {
			t.Errorf("%s: %v: %+v", name, err, after)
		}
		delete(after.Annotations, key)
		delete(before.Annotations, key)
		if before.Annotations == nil {
			before.Annotations = map[string]string{}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: more changed:\n%s", name, diff)
		}
		if strings.Contains(content, "# made by") && (!strings.Contains(string(changed), "# made by kubeadm") || !strings.Contains(string(changed), "[kube-apiserver, --v=2]")) {
			t.Errorf("%s: it is\n%s", name, changed)
		}
	}
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	for want, content := range map[string]string{
		"it is empty":                    " ",
		"it is not a manifest":           "\t{",
		"not the manifest of a v1 Pod":   strings.Replace(manifest, "kind: Pod", "kind: Job", 1),
		"has no name":                    strings.Replace(manifest, "  name: kube-apiserver\n  namespace", "  namespace", 1),
		"read m.yaml: it is not a manif": manifest + "---\n" + manifest,
	} {
		_, err := File{"m.yaml", []byte(content)}.Annotated("a", "b")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "m.yaml") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzReadersNameTheFile(f *testing.F) {
	p := newPKI(f, "leaf", now.Add(Year))
	for _, seed := range [][]byte{p.leafFile.Content, p.leafKeyOf.Content, p.caFile.Content, []byte(kubeconfigOf(p)), []byte(manifest), nil, []byte("-----BEGIN X-----")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := File{"the-file", content}
		_, errChain := file.Chain()
		_, errKey := file.Key()
		_, errConfig := file.Kubeconfig()
		_, errManifest := file.Manifest()
		_, errAnnotated := file.Annotated("a", "b")
		_, errPair := file.WithPair([]byte("a"), []byte("b"))
		for _, err := range []error{errChain, errKey, errConfig, errManifest, errAnnotated, errPair} {
			if err != nil && !strings.HasPrefix(err.Error(), "read the-file") {
				t.Errorf("%q does not name the file", err)
			}
		}
	})
}
