// Package webhook registers EKCO's admission webhooks with the API servers, and replaces their certificate.
//
// The order keeps pods from being delayed or started with the wrong images: the API servers trust a certificate before
// EKCO serves with it, and call a webhook only when it can be reached.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/webhook"
	"github.com/replicatedhq/ekco/journal"
)

const stepTimeout = 30 * time.Second

// Server is the server of the webhooks in this process.
type Server interface {
	Use(ctx context.Context, certificate *webhook.Certificate) error
	Serving() string
	Stop()
}

// PriorityClasses reads and creates priority classes.
type PriorityClasses interface {
	HasPriorityClass(ctx context.Context, name string) (bool, error)
	CreatePriorityClass(ctx context.Context, name string) error
}

// Webhooks are the webhooks in the cluster and in this process. All fields must be set.
type Webhooks struct {
	webhook.Cluster
	Server  Server
	Classes PriorityClasses
	// Reach returns nil if the webhooks can be reached through the Service.
	Reach func(ctx context.Context, service corev1.Service, certificate *webhook.Certificate) error
	// TryPod returns a pod as the API server would store it.
	TryPod func(ctx context.Context, pod corev1.Pod) (corev1.Pod, error)
	// Create creates a certificate.
	Create func() (*webhook.Certificate, error)
	// Changed is called after a change, to trigger a new read.
	Changed func()
}

// Read returns the facts. They do not exist if no webhook is wanted or registered.
func (w *Webhooks) Read(ctx context.Context) (facts journal.WebhookFacts, exist bool, err error) {
	registered, err := w.Registered(ctx)
	if err != nil {
		return facts, false, err
	}
	facts.Serving = w.Server.Serving()
	for _, r := range registered {
		facts.Configurations = append(facts.Configurations, journal.WebhookConfiguration{Name: r.Name, Trusts: r.Trusts, Differs: r.Differs})
	}
	if len(w.Settings.Wanted()) == 0 {
		return facts, len(registered) > 0 || facts.Serving != "", nil
	}
	_, facts.Service, err = w.Service(ctx)
	if err != nil {
		return facts, false, err
	}
	certificate, err := w.Certificate(ctx)
	if unusable, ok := errors.AsType[*webhook.UnusableError](err); ok {
		facts.Certificate.Problem, err = unusable.Reason, nil
	} else if err == nil {
		facts.Certificate = journal.WebhookCertificate{Fingerprint: certificate.Fingerprint, NotBefore: certificate.NotBefore.UTC(), NotAfter: certificate.NotAfter.UTC()}
	}
	return facts, true, err
}

// New returns the action.
func New(w *Webhooks) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionConfigureWebhooks, Noun: "configuration", Expendable: true, RetriesStalled: true,
		Plan: actions.PlanOf(w.plan),
		Steps: map[string]actions.StepDef{
			journal.StepWebhookCertificate: {Step: actions.WithFacts(storeCertificate{w})},
			journal.StepWebhookService:     {Step: createService{w}},
			journal.StepTrustWebhook:       {Step: trust{w}},
			journal.StepServeWebhooks:      {Step: serve{w}},
			journal.StepRegisterWebhooks:   {Step: register{w}},
			journal.StepTryWebhooks:        {Step: try{w}},
			journal.StepUnregisterWebhooks: {Step: unregister{w}},
		},
	}
}

// plan needs only the settings.
func (w *Webhooks) plan(context.Context, journal.ActionRecord, journal.WebhookInput) (plan journal.Plan, _ error) {
	steps := []string{journal.StepUnregisterWebhooks}
	if len(w.Settings.Wanted()) > 0 {
		steps = []string{journal.StepWebhookCertificate, journal.StepWebhookService, journal.StepTrustWebhook, journal.StepServeWebhooks, journal.StepRegisterWebhooks}
	}
	if len(w.Settings.Overrides) > 0 {
		steps = append(steps, journal.StepTryWebhooks)
	}
	for i, id := range steps {
		step := journal.PlannedStep{ID: id, Does: id, Timeout: journal.Duration(stepTimeout), Domains: actions.NoDomains}
		if i > 0 {
			step.After = steps[i-1 : i]
		}
		plan.Steps = append(plan.Steps, step)
	}
	return plan, nil
}

// storeCertificate creates a certificate, unless the Secret has one that is not to be replaced.
type storeCertificate struct{ *Webhooks }

func (s storeCertificate) Prove(ctx context.Context, _ actions.StepContext, in journal.WebhookInput) (actions.Proof, error) {
	certificate, err := s.Certificate(ctx)
	unusable, is := errors.AsType[*webhook.UnusableError](err)
	switch {
	case is:
		return actions.Proof{Missing: unusable.Reason}, nil
	case err != nil:
		return actions.Proof{}, err
	case certificate.Fingerprint == in.Replace:
		return actions.Proof{Missing: "the Secret still has the former certificate"}, nil
	}
	outputs, err := json.Marshal(journal.WebhookCertificateStored{Fingerprint: certificate.Fingerprint})
	return actions.Proof{Done: true, Outputs: outputs}, err
}

func (s storeCertificate) Do(ctx context.Context, step actions.StepContext, in journal.WebhookInput) (json.RawMessage, error) {
	if proof, err := s.Prove(ctx, step, in); err != nil || proof.Done {
		return proof.Outputs, err
	}
	certificate, err := s.Create()
	if err != nil {
		return nil, err
	}
	return nil, s.Store(ctx, certificate)
}

type createService struct{ *Webhooks }

func (s createService) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	_, exists, err := s.Service(ctx)
	return actions.Proof{Done: exists, Missing: "Service kurl/ekco does not exist"}, err
}

func (s createService) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	if proof, err := s.Prove(ctx, step); err != nil || proof.Done {
		return nil, err
	}
	return nil, s.CreateService(ctx)
}

// trust makes the API servers trust the certificate in addition to the one that EKCO still serves with.
type trust struct{ *Webhooks }

func (s trust) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	certificate, err := s.Certificate(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	registered, err := s.Registered(ctx)
	for _, r := range registered {
		if !slices.Contains(r.Trusts, certificate.Fingerprint) && !slices.Contains(r.Differs, "webhooks") {
			return actions.Proof{Missing: r.Name + " does not trust the certificate"}, err
		}
	}
	return actions.Proof{Done: true}, err
}

func (s trust) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	certificate, err := s.Certificate(ctx)
	for _, name := range []string{webhook.NameImages, webhook.NamePriority} {
		if err == nil {
			err = s.Trust(ctx, name, certificate)
		}
	}
	return nil, err
}

// serve uses the certificate, and waits until the webhooks can be reached through the Service.
type serve struct{ *Webhooks }

func (s serve) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	certificate, err := s.Certificate(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	if s.Server.Serving() != certificate.Fingerprint {
		return actions.Proof{Missing: "EKCO does not serve with the certificate"}, nil
	}
	service, exists, err := s.Service(ctx)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case !exists:
		return actions.Proof{Missing: "Service kurl/ekco does not exist"}, nil
	}
	if err := s.Reach(ctx, service, certificate); err != nil {
		return actions.Proof{Missing: err.Error()}, nil //nolint:nilerr // the error is the reason why the step is not done
	}
	return actions.Proof{Done: true}, nil
}

func (s serve) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	return nil, s.use(ctx)
}

// use makes the server use the certificate. An EKCO that was started again calls it also in later steps.
func (w *Webhooks) use(ctx context.Context) error {
	certificate, err := w.Certificate(ctx)
	if err != nil {
		return err
	}
	return w.Server.Use(ctx, certificate)
}

// register registers the webhooks with the certificate alone, and no others.
type register struct{ *Webhooks }

func (s register) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	certificate, err := s.Certificate(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	registered, err := s.Registered(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	names := make([]string, 0, len(registered))
	for _, r := range registered {
		names = append(names, r.Name)
		if len(r.Differs) > 0 || !slices.Equal(r.Trusts, []string{certificate.Fingerprint}) {
			return actions.Proof{Missing: r.Name + " is not as EKCO registers it"}, nil
		}
	}
	if wanted := s.Settings.Wanted(); !slices.Equal(names, wanted) {
		return actions.Proof{Missing: fmt.Sprintf("registered is %v, want %v", names, wanted)}, nil
	}
	if s.Server.Serving() != certificate.Fingerprint {
		return actions.Proof{Missing: "EKCO does not serve with the certificate"}, nil
	}
	return actions.Proof{Done: true}, nil
}

func (s register) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	if err := s.use(ctx); err != nil {
		return nil, err
	}
	certificate, err := s.Certificate(ctx)
	if err != nil {
		return nil, err
	}
	wanted := s.Settings.Wanted()
	for _, name := range []string{webhook.NameImages, webhook.NamePriority} {
		switch {
		case !slices.Contains(wanted, name):
			err = s.Unregister(ctx, name)
		case name == webhook.NamePriority:
			err = s.ensureClass(ctx)
			fallthrough
		default:
			if err == nil {
				err = s.Register(ctx, name, certificate.CA)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	s.Changed()
	return nil, nil
}

// ensureClass makes sure that the priority class exists: without it, no pod of the class could be created.
func (s register) ensureClass(ctx context.Context) error {
	exists, err := s.Classes.HasPriorityClass(ctx, s.Settings.PriorityClass)
	if err != nil || exists {
		return err
	}
	return s.Classes.CreatePriorityClass(ctx, s.Settings.PriorityClass)
}

// try creates a pod with an image to replace in a dry run.
type try struct{ *Webhooks }

// trial is the name of the container with that image.
const trial = "trial"

func (s try) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	if len(s.Settings.Overrides) == 0 { // EKCO was restarted with other settings, and the action is not cancelled yet
		return actions.Proof{Done: true}, nil
	}
	override := s.Settings.Overrides[0]
	pod, err := s.TryPod(ctx, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kurl", Name: "ekco-webhook-trial"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: trial, Image: override.Original}}},
	})
	if err != nil {
		return actions.Proof{}, err
	}
	// Another webhook may add containers, also before this one.
	for _, container := range pod.Spec.Containers {
		if container.Name == trial && container.Image != override.Replacement {
			return actions.Proof{Missing: fmt.Sprintf("a pod with image %s would get %s, not %s", override.Original, container.Image, override.Replacement)}, nil
		}
	}
	return actions.Proof{Done: true}, nil
}

func (s try) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	return nil, s.use(ctx)
}

// unregister makes the API servers no longer call the webhooks, and then stops the server.
type unregister struct{ *Webhooks }

func (s unregister) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	registered, err := s.Registered(ctx)
	return actions.Proof{Done: err == nil && len(registered) == 0 && s.Server.Serving() == "", Missing: "a webhook is registered"}, err
}

func (s unregister) Do(ctx context.Context, _ actions.StepContext) (json.RawMessage, error) {
	for _, name := range []string{webhook.NameImages, webhook.NamePriority} {
		if err := s.Unregister(ctx, name); err != nil {
			return nil, err
		}
	}
	s.Server.Stop()
	s.Changed()
	return nil, nil
}
