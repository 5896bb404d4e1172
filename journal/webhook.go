package journal

import "time"

// ActionConfigureWebhooks makes the API servers call EKCO's admission webhooks, or no longer call them.
const ActionConfigureWebhooks ActionKind = "configure-webhooks"

// The steps of configure-webhooks. The first five are those of a registration, in this order; the last is the only one if
// no webhook is wanted.
const (
	StepWebhookCertificate = "store-certificate"
	StepWebhookService     = "create-service"
	StepTrustWebhook       = "trust-certificate"
	StepServeWebhooks      = "serve"
	StepRegisterWebhooks   = "register"
	StepTryWebhooks        = "try"
	StepUnregisterWebhooks = "unregister"
)

// Webhooks are EKCO's admission webhooks. They have one server, one certificate and one Service, and are one object for
// EKCO.
var Webhooks = Subject{Kind: "Webhook", Name: "kurl/ekco"}

// WebhookFacts are the facts about the webhooks that decisions use. Fingerprints are the SHA-256 of the CA of a
// certificate.
type WebhookFacts struct {
	// Certificate is the certificate in Secret kurl/ekco-webhook.
	Certificate WebhookCertificate `json:"certificate,omitzero"`
	// Serving is the fingerprint of the certificate with which this EKCO serves, or "" if it does not serve.
	Serving string `json:"serving,omitempty"`
	// Service reports whether Service kurl/ekco exists.
	Service bool `json:"service,omitempty"`
	// Configurations are the MutatingWebhookConfigurations of the two webhooks that exist, by name.
	Configurations []WebhookConfiguration `json:"configurations,omitempty"`
}

// WebhookCertificate has a Problem, and no other values, if there is no certificate that would work.
type WebhookCertificate struct {
	Fingerprint string    `json:"fingerprint,omitempty"`
	NotBefore   time.Time `json:"not_before,omitzero"`
	NotAfter    time.Time `json:"not_after,omitzero"`
	Problem     string    `json:"problem,omitempty"`
}

// WebhookConfiguration is a MutatingWebhookConfiguration.
type WebhookConfiguration struct {
	Name string `json:"name"`
	// Trusts has the fingerprints of the CAs that it trusts.
	Trusts []string `json:"trusts,omitempty"`
	// Differs names its fields that differ from those which EKCO registers, except the trusted CAs.
	Differs []string `json:"differs,omitempty"`
}

// Changes implements the facts of an object. The facts have no counter of changes.
func (f WebhookFacts) Changes() int64 { return 0 }

// WithUID returns the facts. The webhooks have no UID.
func (f WebhookFacts) WithUID(string) WebhookFacts { return f }

// WebhookInput is the input of a configure-webhooks. Settings is the hash of the settings for which it was requested.
type WebhookInput struct {
	Settings string `json:"settings,omitempty"`
	// Replace is the fingerprint of the certificate to replace, or "".
	Replace string `json:"replace,omitempty"`
}

// WebhookCertificateStored are the outputs of the step store-certificate.
type WebhookCertificateStored struct {
	Fingerprint string `json:"fingerprint"`
}
