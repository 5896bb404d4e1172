package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

var imagesRef = ConfigurationRef(NameImages)

// newCluster returns a cluster without objects. Its settings ask for both webhooks.
func newCluster() (Cluster, *kubesim.Objects) {
	objects := kubesim.NewObjects()
	return Cluster{Objects: objects, Settings: Settings{Overrides: []Override{{"a", "b"}}, PriorityClass: "node-critical"}}, objects
}

// twoCertificates returns two certificates, which all tests here share.
var twoCertificates = sync.OnceValue(func() (pair [2]*Certificate) {
	for i := range pair {
		var err error
		if pair[i], err = NewCertificate(now); err != nil {
			panic(err)
		}
	}
	return pair
})

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// registration returns the only configuration, or fails the test.
func registration(t *testing.T, c Cluster) Registered {
	t.Helper()
	all, err := c.Registered(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("registered is %+v, %v", all, err)
	}
	return all[0]
}

// editHook changes the webhook of the configuration for images.
func editHook(objects *kubesim.Objects, change func(hook map[string]any)) {
	objects.Edit(imagesRef, func(object map[string]any) { change(object["webhooks"].([]any)[0].(map[string]any)) })
}

// trusting is the content of a configuration with this bundle, a label and an annotation.
func trusting(bundle []byte) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"webhooks":[{"name":"x","clientConfig":{"caBundle":"%s"}}]}`, base64.StdEncoding.EncodeToString(bundle))
}

func TestRegisterChangesOnlyTheWebhooks(t *testing.T) {
	certificate := twoCertificates()[0]
	for name, before := range map[string]string{
		"absent":              "",
		"of another program":  trusting(nil),
		"without webhooks":    `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`,
		"with other webhooks": `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"webhooks":[{"name":"x"},{"name":"y"}]}`,
	} {
		c, objects := newCluster()
		if before != "" {
			objects.Put(imagesRef, before)
		}
		must(t, c.Register(t.Context(), NameImages, certificate.CA))
		if got := registration(t, c); len(got.Differs) > 0 || !slices.Equal(got.Trusts, []string{certificate.Fingerprint}) {
			t.Errorf("%s: it is registered as %+v", name, got)
		}
		metadata := objects.Object(imagesRef)["metadata"].(map[string]any)
		if got := fmt.Sprint(metadata["labels"], metadata["annotations"]); before != "" && got != "map[a:b] map[c:d]" {
			t.Errorf("%s: labels and annotations are %s", name, got)
		}
	}
}

func TestRegisterKeepsAConcurrentChange(t *testing.T) {
	c, objects := newCluster()
	objects.Put(imagesRef, trusting(nil))
	changed := false
	objects.BeforeEffect = func(string) {
		if !changed {
			changed = true
			objects.Edit(imagesRef, func(object map[string]any) {
				object["metadata"].(map[string]any)["labels"] = map[string]any{"new": "label"}
			})
		}
	}
	must(t, c.Register(t.Context(), NameImages, twoCertificates()[0].CA))
	if labels := objects.Object(imagesRef)["metadata"].(map[string]any)["labels"]; fmt.Sprint(labels) != "map[new:label]" || len(registration(t, c).Differs) > 0 {
		t.Errorf("the labels are %v", labels)
	}
}

func TestDiffersNamesTheChangedField(t *testing.T) {
	for _, test := range []struct {
		want   []string
		change func(hook map[string]any)
	}{
		{nil, func(map[string]any) {}},
		{nil, func(hook map[string]any) { delete(hook, "matchConditions") }}, // an API server before 1.28
		{nil, func(hook map[string]any) { hook["clientConfig"].(map[string]any)["caBundle"] = "" }},
		{[]string{"matchConditions"}, func(hook map[string]any) {
			hook["matchConditions"] = []any{map[string]any{"name": "x", "expression": "false"}}
		}},
		{[]string{"failurePolicy"}, func(hook map[string]any) { hook["failurePolicy"] = "Fail" }},
		{[]string{"timeoutSeconds"}, func(hook map[string]any) { hook["timeoutSeconds"] = 30 }},
		{[]string{"clientConfig"}, func(hook map[string]any) {
			hook["clientConfig"].(map[string]any)["service"].(map[string]any)["name"] = "other"
		}},
		{[]string{"rules"}, func(hook map[string]any) { hook["rules"] = hook["rules"].([]any)[1:] }},
		{[]string{"namespaceSelector", "objectSelector"}, func(hook map[string]any) {
			hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"x": "y"}}
			delete(hook, "objectSelector")
		}},
	} {
		c, objects := newCluster()
		must(t, c.Register(t.Context(), NameImages, twoCertificates()[0].CA))
		editHook(objects, test.change)
		if got := registration(t, c).Differs; !slices.Equal(got, test.want) {
			t.Errorf("the changed fields are %q, want %q", got, test.want)
		}
	}
	c, objects := newCluster()
	objects.Put(imagesRef, `{"webhooks":[]}`)
	if got := registration(t, c).Differs; !slices.Equal(got, []string{"webhooks"}) {
		t.Errorf("without webhooks, the changed fields are %q", got)
	}
}

func TestOtherOverridesDiffer(t *testing.T) {
	c, _ := newCluster()
	must(t, c.Register(t.Context(), NameImages, twoCertificates()[0].CA))
	c.Settings.Overrides = []Override{{"c", "b"}}
	if got := registration(t, c).Differs; !slices.Equal(got, []string{"matchConditions"}) {
		t.Errorf("the changed fields are %q", got)
	}
}

func TestTrustAddsACertificateOnceAndKeepsTheFormerOnes(t *testing.T) {
	added, former := twoCertificates()[0], twoCertificates()[1]
	for name, test := range map[string]struct {
		bundle []byte
		former int
	}{
		"empty":                        {nil, 0},
		"nonsense":                     {[]byte("nonsense"), 0},
		"another":                      {former.CA, 1},
		"another, no newline at end":   {bytes.TrimSpace(former.CA), 1},
		"already trusted with another": {slices.Concat(former.CA, added.CA), 1},
	} {
		c, objects := newCluster()
		objects.Put(imagesRef, trusting(test.bundle))
		for range 2 {
			must(t, c.Trust(t.Context(), NameImages, added))
		}
		want := []string{added.Fingerprint, former.Fingerprint}[:1+test.former]
		slices.Sort(want)
		if got := registration(t, c).Trusts; !slices.Equal(got, want) {
			t.Errorf("%s: trusted are %q, want %q", name, got, want)
		}
		if n := len(objects.Effects()); n > 1 {
			t.Errorf("%s: it was changed %d times", name, n)
		}
		if metadata := objects.Object(imagesRef)["metadata"].(map[string]any); fmt.Sprint(metadata["labels"], metadata["annotations"]) != "map[a:b] map[c:d]" {
			t.Errorf("%s: the metadata is %v", name, metadata)
		}
	}
}

func TestTrustLeavesWhatItDoesNotKnow(t *testing.T) {
	c, objects := newCluster()
	must(t, c.Trust(t.Context(), NameImages, twoCertificates()[0]))
	objects.Put(imagesRef, `{"webhooks":[{"name":"x"},{"name":"y"}]}`)
	must(t, c.Trust(t.Context(), NameImages, twoCertificates()[0]))
	if effects := objects.Effects(); len(effects) != 0 {
		t.Errorf("it caused %+v", effects)
	}
}

func TestUnregister(t *testing.T) {
	for name, test := range map[string]struct {
		exists   bool
		meantime func(*kubesim.Objects)
		want     error
	}{
		"absent":   {false, nil, nil},
		"exists":   {true, nil, nil},
		"deleted":  {true, func(o *kubesim.Objects) { o.Remove(imagesRef) }, nil},
		"replaced": {true, func(o *kubesim.Objects) { o.Remove(imagesRef); o.Put(imagesRef, "{}") }, kube.ErrOtherUID},
	} {
		c, objects := newCluster()
		if test.exists {
			objects.Put(imagesRef, "{}")
		}
		if test.meantime != nil {
			objects.BeforeEffect = func(string) { test.meantime(objects) }
		}
		err := c.Unregister(t.Context(), NameImages)
		if !errors.Is(err, test.want) || (objects.Object(imagesRef) == nil) != (test.want == nil) {
			t.Errorf("%s: %v, left is %v", name, err, objects.Object(imagesRef))
		}
	}
}

func TestStoreWritesAnySecret(t *testing.T) {
	certificate := twoCertificates()[0]
	for name, test := range map[string]struct {
		before   string
		replaced bool
	}{
		"absent":          {"", false},
		"of EKCO":         {`{"type":"kubernetes.io/tls","data":{"tls.crt":"eA==","tls.key":"eA==","extra":"eA=="},"metadata":{"labels":{"a":"b"}}}`, false},
		"without data":    {`{"type":"kubernetes.io/tls"}`, false},
		"of another type": {`{"type":"Opaque","data":{"tls.crt":"eA=="}}`, true},
		"immutable":       {`{"type":"kubernetes.io/tls","immutable":true,"data":{"tls.crt":"eA=="}}`, true},
	} {
		c, objects := newCluster()
		uid := ""
		if test.before != "" {
			uid = objects.Put(SecretRef, test.before)
		}
		must(t, c.Store(t.Context(), certificate))
		read, err := c.Certificate(t.Context())
		if err != nil || read.Fingerprint != certificate.Fingerprint {
			t.Errorf("%s: read %+v, %v", name, read, err)
		}
		secret, err := kube.Get[corev1.Secret](t.Context(), objects, SecretRef)
		if err != nil || secret.Type != corev1.SecretTypeTLS || secret.Immutable != nil || (uid != "" && string(secret.UID) != uid) != test.replaced {
			t.Errorf("%s: the Secret is %+v, %v", name, secret, err)
		}
		if name == "of EKCO" && (string(secret.Data["extra"]) != "x" || secret.Labels["a"] != "b") {
			t.Errorf("%s: the Secret has lost content: %+v", name, secret)
		}
	}
}

func TestAnUnusableCertificateHasAReason(t *testing.T) {
	for name, test := range map[string]struct{ secret, want string }{
		"absent":   {"", "Secret kurl/ekco-webhook does not exist"},
		"empty":    {`{"type":"kubernetes.io/tls","data":{}}`, "Secret kurl/ekco-webhook"},
		"nonsense": {`{"type":"kubernetes.io/tls","data":{"tls.crt":"eA==","tls.key":"eA=="}}`, "Secret kurl/ekco-webhook"},
	} {
		c, objects := newCluster()
		if test.secret != "" {
			objects.Put(SecretRef, test.secret)
		}
		_, err := c.Certificate(t.Context())
		unusable, is := errors.AsType[*UnusableError](err)
		if !is || !strings.Contains(unusable.Reason, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, objects := newCluster()
	objects.Forbid("get secrets ekco-webhook", "get secrets")
	if _, err := c.Certificate(t.Context()); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("forbidden: %v", err)
	} else if _, is := errors.AsType[*UnusableError](err); is {
		t.Error("a Secret that cannot be read counts as unusable")
	}
}

func TestTheServiceIsCreatedOnceAndNeverChanged(t *testing.T) {
	c, objects := newCluster()
	if _, exists, err := c.Service(t.Context()); exists || err != nil {
		t.Errorf("it exists: %t, %v", exists, err)
	}
	must(t, c.CreateService(t.Context()))
	service, exists, err := c.Service(t.Context())
	if err != nil || !exists || service.Spec.Selector["app"] != "ekc-operator" || len(service.Spec.Ports) != 1 ||
		service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].TargetPort.IntValue() != 443 {
		t.Errorf("it is %+v, %v", service.Spec, err)
	}
	objects.Put(ServiceRef, `{"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	if err := c.CreateService(t.Context()); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("created again: %v", err)
	}
	if service, _, _ := c.Service(t.Context()); service.Spec.ExternalName != "localhost" {
		t.Errorf("it was changed to %+v", service.Spec)
	}
}

func TestTheConditionHasEachImage(t *testing.T) {
	images := []string{"a", "registry:5000/a/b@sha256:0123", `quo"te`, `back\slash`, `\"`, "variables", "<&>", "tab\t, line\n", "\u2028é", "'"}
	var settings Settings
	for _, image := range images {
		settings.Overrides = append(settings.Overrides, Override{image, "b"})
	}
	conditions := settings.conditions()
	if len(conditions) != 1 {
		t.Fatalf("the conditions are %+v", conditions)
	}
	lists := strings.Split(conditions[0].Expression, "c.image in ")[1:]
	for _, list := range lists {
		var read []string
		if err := json.NewDecoder(strings.NewReader(list)).Decode(&read); err != nil || !slices.Equal(read, images) {
			t.Errorf("the images are %q, want %q: %v", read, images, err)
		}
	}
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		if want := "has(object.spec." + field + ") && object.spec." + field + ".exists(c, has(c.image) && c.image in ["; !strings.Contains(conditions[0].Expression, want) {
			t.Errorf("the condition does not have %s: %s", want, conditions[0].Expression)
		}
	}
	if len(lists) != 3 {
		t.Errorf("the condition is %s", conditions[0].Expression)
	}
}

func TestThereIsNoConditionAboveTheLimit(t *testing.T) {
	with := func(length int) []admissionregistrationv1.MatchCondition {
		return Settings{Overrides: []Override{{strings.Repeat("a", length), "b"}}}.conditions()
	}
	empty := len(with(0)[0].Expression)
	limit := (maxCondition - empty) / 3
	if conditions := with(limit); len(conditions) != 1 || len(conditions[0].Expression) > maxCondition {
		t.Errorf("at the limit, the conditions are %+v", conditions)
	}
	if conditions := with(limit + 1); conditions != nil {
		t.Errorf("above the limit, the conditions are %+v", conditions)
	}
}
