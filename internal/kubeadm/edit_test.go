package kubeadm_test

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/replicatedhq/ekco/internal/kubeadm"
)

// golden reads the ClusterStatus of a ConfigMap as kubectl prints it.
func golden(t testing.TB, version string) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/kubeadm/" + version + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &configMap); err != nil {
		t.Fatal(err)
	}
	if configMap.Data["ClusterConfiguration"] == "" {
		t.Fatalf("%s is no ConfigMap of kubeadm", version)
	}
	return configMap.Data[kubeadm.ClusterStatusKey]
}

func remove(t *testing.T, text, node string) kubeadm.Edit {
	t.Helper()
	edit, err := kubeadm.RemoveEndpoint(text, node)
	if err != nil {
		t.Fatal(err)
	}
	return edit
}

// wantText compares, and checks that editing again changes nothing.
func wantText(t *testing.T, got kubeadm.Edit, node, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Errorf("the text differs (-want +got):\n%s", diff)
	}
	if again := remove(t, got.Text, node); again.Changed() || again.Text != got.Text {
		t.Errorf("a second edit changes it again: %+v", again)
	}
}

func TestANodeIsTakenOutOfTheClusterStatusOfKubernetes121(t *testing.T) {
	before := golden(t, "1.21")
	for node, gone := range map[string]string{
		"primary-1":                      "  primary-1:\n    advertiseAddress: 10.128.0.126\n    bindPort: 6443\n",
		"primary-2":                      "  primary-2:\n    advertiseAddress: 10.128.0.63\n    bindPort: 6443\n",
		"primary-3.internal.example.com": "  primary-3.internal.example.com:\n    advertiseAddress: 10.128.0.64\n    bindPort: 6443\n",
	} {
		t.Run(node, func(t *testing.T) {
			got := remove(t, before, node)
			if !got.Removed || got.Repaired {
				t.Errorf("got %+v", got)
			}
			wantText(t, got, node, strings.Replace(before, gone, "", 1))
		})
	}
	t.Run("a node that is not listed", func(t *testing.T) {
		if got := remove(t, before, "worker-1"); got.Changed() || got.Text != before {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTheEndpointsAreReadFromEitherShape(t *testing.T) {
	for version, want := range map[string]map[string]kubeadm.Endpoint{
		"1.21": {
			"primary-1": {AdvertiseAddress: "10.128.0.126", BindPort: 6443}, "primary-2": {AdvertiseAddress: "10.128.0.63", BindPort: 6443},
			"primary-3.internal.example.com": {AdvertiseAddress: "10.128.0.64", BindPort: 6443},
		},
		"1.22":      {},
		"malformed": {"primary-1": {AdvertiseAddress: "10.128.0.126", BindPort: 6443}, "primary-2": {AdvertiseAddress: "10.128.0.63", BindPort: 6443}},
	} {
		got, err := kubeadm.Endpoints(golden(t, version))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %+v, %v", version, got, err)
		}
	}
}

func TestKubernetes122HasNothingToEdit(t *testing.T) {
	text := golden(t, "1.22")
	if got := remove(t, text, "primary-1"); text != "" || got.Changed() || got.Text != "" {
		t.Errorf("of %q was made %+v", text, got)
	}
}

const (
	repairedFirst = `apiEndpoints:
  primary-1:
    advertiseAddress: 10.128.0.126
    bindPort: 6443
`
	repairedSecond = `  primary-2:
    advertiseAddress: 10.128.0.63
    bindPort: 6443
`
	repairedType = `apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterStatus
`
)

func TestAMalformedClusterStatusIsRepairedWhetherOrNotTheNodeIsInIt(t *testing.T) {
	before := golden(t, "malformed")
	got := remove(t, before, "primary-2")
	if !got.Removed || !got.Repaired {
		t.Errorf("got %+v", got)
	}
	wantText(t, got, "primary-2", repairedFirst+repairedType)

	got = remove(t, before, "worker-1")
	if got.Removed || !got.Repaired {
		t.Errorf("got %+v", got)
	}
	wantText(t, got, "worker-1", repairedFirst+repairedSecond+repairedType)
}

func TestTheEditTouchesNothingElse(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"comments, order and blank lines": {
			"# ours\nkind: ClusterStatus # yes\n\napiEndpoints: # list\n  # first\n  a:\n    advertiseAddress: 10.0.0.1\n    bindPort: 6443\n  # second\n  b: # dead\n    # its address\n    advertiseAddress: \"10.0.0.2\"\n    bindPort: 6443\n\n  # third\n  c: {advertiseAddress: 10.0.0.3, bindPort: 6443}\napiVersion: kubeadm.k8s.io/v1beta2\nextra:\n  list: [1, 2]\n",
			"# ours\nkind: ClusterStatus # yes\n\napiEndpoints: # list\n  # first\n  a:\n    advertiseAddress: 10.0.0.1\n    bindPort: 6443\n  # second\n\n  # third\n  c: {advertiseAddress: 10.0.0.3, bindPort: 6443}\napiVersion: kubeadm.k8s.io/v1beta2\nextra:\n  list: [1, 2]\n",
		},
		"the last endpoint": {
			"apiEndpoints: # list\n  b:\n    advertiseAddress: 10.0.0.2\n    bindPort: 6443\nkind: ClusterStatus\n",
			"apiEndpoints: {} # list\nkind: ClusterStatus\n",
		},
		"the last endpoint, malformed": {
			"apiendpoints:\n  b:\n    advertiseaddress: 10.0.0.2\n    bindport: 6443\ntypemeta:\n  kind: ClusterStatus\n  apiversion: kubeadm.k8s.io/v1beta2\n",
			"apiEndpoints: {}\nkind: ClusterStatus\napiVersion: kubeadm.k8s.io/v1beta2\n",
		},
		"a document marker and no final line end": {
			"---\nkind: ClusterStatus\napiEndpoints:\n  a:\n    bindPort: 6443\n  b:\n    bindPort: 6443",
			"---\nkind: ClusterStatus\napiEndpoints:\n  a:\n    bindPort: 6443\n",
		},
		"a quoted name and unknown fields": {
			"apiEndpoints:\n  \"b\":\n    advertiseAddress: fd00::2\n    bindPort: 6443\n    zone: {name: east}\n  bb:\n    advertiseAddress: fd00::3\n",
			"apiEndpoints:\n  bb:\n    advertiseAddress: fd00::3\n",
		},
		"line ends of Windows": {
			"apiEndpoints:\r\n  b:\r\n    bindPort: 6443\r\n  c:\r\n    bindPort: 6443\r\n",
			"apiEndpoints:\r\n  c:\r\n    bindPort: 6443\r\n",
		},
		"an endpoint without fields": {
			"apiEndpoints:\n  b: {}\n  c:\n    bindPort: 6443\n",
			"apiEndpoints:\n  c:\n    bindPort: 6443\n",
		},
		"partly malformed": {
			"apiendpoints:\n  b:\n    advertiseAddress: 10.0.0.2\n    bindport: 6443\n  c:\n    advertiseaddress: 10.0.0.3 # c\n    bindPort: 6443\ntypemeta:\n  # meta\n  kind: ClusterStatus\n  apiversion: kubeadm.k8s.io/v1beta2\n",
			"apiEndpoints:\n  c:\n    advertiseAddress: 10.0.0.3 # c\n    bindPort: 6443\n# meta\nkind: ClusterStatus\napiVersion: kubeadm.k8s.io/v1beta2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, remove(t, test.before, "b"), "b", test.after)
		})
	}
}

func TestADocumentOfUnknownShapeIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":                      "apiEndpoints: [",
		"a list":                       "- a\n",
		"a string":                     "hello",
		"another kind":                 "kind: InitConfiguration\napiEndpoints:\n  b:\n    bindPort: 1\n",
		"two documents":                "apiEndpoints: {}\n---\nkind: ClusterStatus\n",
		"endpoints in a list":          "apiEndpoints:\n- b\n",
		"endpoints in braces":          "apiEndpoints: {b: {bindPort: 6443}}\n",
		"an endpoint that is a string": "apiEndpoints:\n  b: 10.0.0.2\n",
		"a port that is none":          "apiEndpoints:\n  b:\n    bindPort: https\n",
		"both spellings":               "apiEndpoints:\n  a:\n    bindPort: 1\napiendpoints:\n  b:\n    bindport: 1\n",
		"both spellings below":         "apiEndpoints:\n  b:\n    bindPort: 1\n    bindport: 1\n",
		"a key twice":                  "apiEndpoints:\n  b:\n    bindPort: 1\n  b:\n    bindPort: 2\n",
		"an anchor":                    "apiEndpoints:\n  a: &x\n    bindPort: 1\n  b: *x\n",
		"malformed without its kind":   "apiendpoints:\n  b:\n    bindport: 1\n",
		"malformed in braces":          "apiendpoints: {b: {bindport: 1}}\ntypemeta: {kind: ClusterStatus, apiversion: v}\n",
		"malformed with more":          "apiendpoints:\n  b:\n    bindport: 1\ntypemeta:\n  kind: ClusterStatus\n  apiversion: v\n  more: 1\n",
		"text that spans lines":        "apiEndpoints:\n  b:\n    bindPort: 1\n    note: |\n      one\n      two\n  c:\n    bindPort: 1\n",
		"other line ends":              "apiEndpoints:\r  b:\r    bindPort: 1\r  c:\r    bindPort: 1\r",
	} {
		t.Run(name, func(t *testing.T) {
			edit, err := kubeadm.RemoveEndpoint(text, "b")
			if !errors.Is(err, kubeadm.ErrUnknownShape) || edit != (kubeadm.Edit{}) {
				t.Errorf("got %+v, %v", edit, err)
			}
		})
	}
}

// FuzzRemoveEndpoint checks, for whatever is not refused: the node is gone, the
// other endpoints are as they were, and a second edit changes nothing.
func FuzzRemoveEndpoint(f *testing.F) {
	for _, version := range []string{"1.21", "malformed"} {
		f.Add(golden(f, version), "primary-2")
	}
	f.Add("apiEndpoints:\n  b: # x\n    bindPort: 1\n\nkind: ClusterStatus", "b")
	f.Add("apiEndpoints:\r  b:\u0085    bindPort: 1\u2028", "b")
	f.Fuzz(func(t *testing.T, text, node string) {
		before, err := kubeadm.Endpoints(text)
		if err != nil {
			return
		}
		edit, err := kubeadm.RemoveEndpoint(text, node)
		if err != nil {
			if !errors.Is(err, kubeadm.ErrUnknownShape) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		after, err := kubeadm.Endpoints(edit.Text)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, edit.Text, err)
		}
		_, listed := before[node]
		delete(before, node)
		if listed != edit.Removed || !maps.Equal(before, after) {
			t.Fatalf("%q became %q", text, edit.Text)
		}
		if edit.Changed() != (edit.Text != text) {
			t.Fatalf("%q became %q: %+v", text, edit.Text, edit)
		}
		again, err := kubeadm.RemoveEndpoint(edit.Text, node)
		if err != nil || again.Changed() {
			t.Fatalf("%q became %q, and again %+v, %v", text, edit.Text, again, err)
		}
	})
}
