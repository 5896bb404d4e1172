package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The objects of the webhooks.
var (
	SecretRef  = kube.Ref{Version: "v1", Resource: "secrets", Namespace: "kurl", Name: "ekco-webhook"}
	ServiceRef = kube.Ref{Version: "v1", Resource: "services", Namespace: "kurl", Name: "ekco"}
)

// ConfigurationRef identifies the MutatingWebhookConfiguration of a webhook.
func ConfigurationRef(name string) kube.Ref {
	return kube.Ref{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations", Name: name}
}

// Cluster reads and writes the objects of the webhooks. All fields must be set.
type Cluster struct {
	Objects  kube.Objects
	Settings Settings
}

// Registered is the MutatingWebhookConfiguration of a webhook.
type Registered struct {
	Name string
	// Trusts has the fingerprints of the CAs that it trusts.
	Trusts []string
	// Differs names its fields that differ from those which [Cluster.Register] writes, except the trusted CAs.
	Differs []string
}

// Registered returns the configurations that exist, by name.
func (c Cluster) Registered(ctx context.Context) ([]Registered, error) {
	var all []Registered
	for _, name := range []string{NameImages, NamePriority} {
		read, found, err := kube.Find[admissionregistrationv1.MutatingWebhookConfiguration](ctx, c.Objects, ConfigurationRef(name))
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, c.registered(name, &read))
		}
	}
	return all, nil
}

func (c Cluster) registered(name string, read *admissionregistrationv1.MutatingWebhookConfiguration) Registered {
	if len(read.Webhooks) != 1 {
		return Registered{Name: name, Differs: []string{"webhooks"}}
	}
	return Registered{Name: name, Trusts: fingerprints(read.Webhooks[0].ClientConfig.CABundle), Differs: differs(read.Webhooks[0], c.Settings.webhook(name))}
}

// Register creates the configuration of a webhook, or changes its webhooks. bundle is a PEM file with the CAs to trust.
// Labels, annotations and other metadata stay.
func (c Cluster) Register(ctx context.Context, name string, bundle []byte) error {
	ref, hook := ConfigurationRef(name), c.Settings.webhook(name)
	hook.ClientConfig.CABundle = bundle
	webhooks := []admissionregistrationv1.MutatingWebhook{hook}
	return kube.Retry(kube.ErrConflict, func() error {
		raw, err := c.Objects.ReadObject(ctx, ref)
		if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
			return c.create(ctx, ref, admissionregistrationv1.MutatingWebhookConfiguration{
				TypeMeta: configurationType, ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks,
			})
		}
		if err == nil {
			raw, err = kube.Edit(ref, raw, func(object map[string]any) error {
				object["webhooks"] = webhooks
				return nil
			})
		}
		if err == nil {
			_, err = c.Objects.ReplaceObject(ctx, ref, raw)
		}
		return err
	})
}

var configurationType = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}

func (c Cluster) create(ctx context.Context, ref kube.Ref, object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("create %s: %w", ref, err)
	}
	_, err = c.Objects.CreateObject(ctx, ref, raw)
	return err
}

// Trust adds the CA to those that a configuration trusts. It does nothing if the configuration does not exist or already
// trusts it.
func (c Cluster) Trust(ctx context.Context, name string, certificate *Certificate) error {
	ref := ConfigurationRef(name)
	return kube.Retry(kube.ErrConflict, func() error {
		read, found, err := kube.Find[admissionregistrationv1.MutatingWebhookConfiguration](ctx, c.Objects, ref)
		if err != nil || !found || len(read.Webhooks) != 1 {
			return err
		}
		bundle := read.Webhooks[0].ClientConfig.CABundle
		trusted := fingerprints(bundle)
		if slices.Contains(trusted, certificate.Fingerprint) {
			return nil
		}
		if len(trusted) == 0 {
			bundle = nil // it has nothing that can be trusted
		}
		// Another program may have written the bundle without a newline at its end.
		read.Webhooks[0].ClientConfig.CABundle = slices.Concat(bundle, []byte("\n"), certificate.CA)
		read.TypeMeta = configurationType
		raw, err := json.Marshal(read)
		if err == nil {
			_, err = c.Objects.ReplaceObject(ctx, ref, raw)
		}
		return err
	})
}

// Unregister deletes the configuration of a webhook. A configuration that does not exist is no error.
func (c Cluster) Unregister(ctx context.Context, name string) error {
	ref := ConfigurationRef(name)
	read, found, err := kube.Find[metav1.PartialObjectMetadata](ctx, c.Objects, ref)
	if err != nil || !found {
		return err
	}
	err = c.Objects.DeleteObject(ctx, ref, string(read.UID))
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return nil
	}
	return err
}

// Certificate returns the certificate in the Secret. The error is an [*UnusableError] if there is none that would work.
func (c Cluster) Certificate(ctx context.Context) (*Certificate, error) {
	secret, found, err := kube.Find[corev1.Secret](ctx, c.Objects, SecretRef)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, &UnusableError{"Secret kurl/ekco-webhook does not exist"}
	}
	certificate, err := ReadCertificate("Secret kurl/ekco-webhook", secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &UnusableError{err.Error()}
	}
	return certificate, nil
}

// UnusableError says why the Secret has no certificate that would work.
type UnusableError struct{ Reason string }

func (e *UnusableError) Error() string { return e.Reason }

// Store writes a certificate to the Secret. It replaces a Secret that cannot be changed.
func (c Cluster) Store(ctx context.Context, certificate *Certificate) error {
	data := map[string][]byte{corev1.TLSCertKey: certificate.Chain, corev1.TLSPrivateKeyKey: certificate.Key}
	return kube.Retry(kube.ErrConflict, func() error {
		secret, found, err := kube.Find[corev1.Secret](ctx, c.Objects, SecretRef)
		if err != nil {
			return err
		}
		if found && (secret.Type != corev1.SecretTypeTLS || secret.Immutable != nil && *secret.Immutable) {
			if err := c.Objects.DeleteObject(ctx, SecretRef, string(secret.UID)); err != nil {
				return err
			}
			found = false
		}
		if !found {
			return c.create(ctx, SecretRef, corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: SecretRef.Namespace, Name: SecretRef.Name},
				Type:       corev1.SecretTypeTLS, Data: data,
			})
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		maps.Copy(secret.Data, data)
		secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		raw, err := json.Marshal(secret)
		if err == nil {
			_, err = c.Objects.ReplaceObject(ctx, SecretRef, raw)
		}
		return err
	})
}

// Service returns the Service, and whether it exists.
func (c Cluster) Service(ctx context.Context) (corev1.Service, bool, error) {
	return kube.Find[corev1.Service](ctx, c.Objects, ServiceRef)
}

// CreateService creates the Service, with the ports and selector of earlier versions of EKCO, which never change a
// Service that they find.
func (c Cluster) CreateService(ctx context.Context) error {
	return c.create(ctx, ServiceRef, corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ServiceRef.Namespace, Name: ServiceRef.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "ekc-operator"},
			Ports:    []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(443)}},
		},
	})
}
