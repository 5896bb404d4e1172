package webhook

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// The names of the two MutatingWebhookConfigurations, and of the webhook in each. kURL's installer waits for the first.
const (
	NameImages   = "pod-image-overrides.kurl.sh"
	NamePriority = "rook-priority.kurl.sh"
)

// LabelPriority is the label of namespaces whose Deployments and DaemonSets get the priority class.
const LabelPriority = "rook-priority.kurl.sh"

// maxCondition limits the match condition, in bytes, so that its evaluation stays far below the API server's limit of
// cost. With a longer list of images, the API server calls the webhook for every pod.
const maxCondition = 16 << 10

// Settings are the settings of the webhooks.
type Settings struct {
	Overrides     []Override
	PriorityClass string
}

// Wanted returns the names of the webhooks that the settings ask for, sorted.
func (s Settings) Wanted() []string {
	var wanted []string
	if len(s.Overrides) > 0 {
		wanted = append(wanted, NameImages)
	}
	if s.PriorityClass != "" {
		wanted = append(wanted, NamePriority)
	}
	return wanted
}

// Hash returns a hash of the settings.
func (s Settings) Hash() string {
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(err) // settings can always be encoded
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// webhook returns the webhook with this name, without trusted CAs. It sets every field, so that it equals what the API
// server stores.
func (s Settings) webhook(name string) admissionregistrationv1.MutatingWebhook {
	ignore, equivalent, none := admissionregistrationv1.Ignore, admissionregistrationv1.Equivalent, admissionregistrationv1.SideEffectClassNone
	never, allScopes := admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.AllScopes
	path, port, timeout := PathImages, int32(443), int32(10)
	created := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	hook := admissionregistrationv1.MutatingWebhook{
		Name: name, FailurePolicy: &ignore, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &timeout,
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: &never,
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
	}
	rule := func(group, resource string, operations ...admissionregistrationv1.OperationType) {
		hook.Rules = append(hook.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: &allScopes,
			},
		})
	}
	switch name {
	case NameImages:
		rule("", "pods", created...)
		rule("", "pods/ephemeralcontainers", admissionregistrationv1.Update)
		hook.MatchConditions = s.conditions()
	case NamePriority:
		path = PathPriority
		rule("apps", "deployments", created...)
		rule("apps", "daemonsets", created...)
		hook.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: LabelPriority, Operator: metav1.LabelSelectorOpExists}}
	}
	hook.ClientConfig.Service = &admissionregistrationv1.ServiceReference{
		Namespace: ServiceRef.Namespace, Name: ServiceRef.Name, Path: &path, Port: &port,
	}
	return hook
}

// conditions returns a condition in CEL that only pods with one of the images meet. API servers before Kubernetes 1.28
// drop it.
func (s Settings) conditions() []admissionregistrationv1.MatchCondition {
	images := make([]string, 0, len(s.Overrides))
	for _, override := range s.Overrides {
		quoted, err := json.Marshal(override.Original)
		if err != nil {
			panic(err) // a string can always be encoded
		}
		images = append(images, string(quoted))
	}
	// An expression that fails would make the API server skip the webhook, so it asks whether a field exists.
	list := "[" + strings.Join(images, ",") + "]"
	var fields []string
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		fields = append(fields, "has(object.spec."+field+") && object.spec."+field+".exists(c, has(c.image) && c.image in variables)")
	}
	expression := strings.ReplaceAll("has(object.spec) && ("+strings.Join(fields, " || ")+")", "variables", list)
	if len(expression) > maxCondition {
		return nil
	}
	return []admissionregistrationv1.MatchCondition{{Name: "has-an-overridden-image", Expression: expression}}
}

// differs names the fields of a stored webhook that differ from those of another, except the trusted CAs.
func differs(stored, wanted admissionregistrationv1.MutatingWebhook) []string {
	stored.ClientConfig.CABundle, wanted.ClientConfig.CABundle = nil, nil
	if len(stored.MatchConditions) == 0 {
		wanted.MatchConditions = nil // the API server is older than 1.28
	}
	var names []string
	before, after := reflect.ValueOf(stored), reflect.ValueOf(wanted)
	for i := range before.NumField() {
		if !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// fingerprints returns the fingerprints of the CAs in a PEM file. It leaves out other content.
func fingerprints(bundle []byte) (found []string) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if ca, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, certificates.Fingerprint(ca))
		}
	}
	slices.Sort(found)
	return found
}
