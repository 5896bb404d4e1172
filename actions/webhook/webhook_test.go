package webhook

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/webhook"
	"github.com/replicatedhq/ekco/journal"
)

var (
	imagesRef   = webhook.ConfigurationRef(webhook.NameImages)
	priorityRef = webhook.ConfigurationRef(webhook.NamePriority)
)

func TestEachStepAlone(t *testing.T) {
	for _, test := range []struct {
		name, step, missing string
		replace             bool
		prepare             func(c *cluster)
	}{
		{"no Secret", journal.StepWebhookCertificate, "Secret kurl/ekco-webhook does not exist", false, func(c *cluster) { c.objects.Remove(webhook.SecretRef) }},
		{"a Secret to replace", journal.StepWebhookCertificate, "the Secret still has the former certificate", true, func(*cluster) {}},
		{"no Service", journal.StepWebhookService, "Service kurl/ekco does not exist", false, func(c *cluster) { c.objects.Remove(webhook.ServiceRef) }},
		{"not trusted", journal.StepTrustWebhook, "pod-image-overrides.kurl.sh does not trust the certificate", false, (*cluster).renewSecret},
		{"not served", journal.StepServeWebhooks, "EKCO does not serve with the certificate", false, (*cluster).renewSecret},
		{"not registered", journal.StepRegisterWebhooks, "registered is [rook-priority.kurl.sh], want [pod-image-overrides.kurl.sh rook-priority.kurl.sh]", false, func(c *cluster) {
			c.objects.Remove(imagesRef)
			c.known = map[string]bool{}
		}},
		{"changed", journal.StepRegisterWebhooks, "pod-image-overrides.kurl.sh is not as EKCO registers it", false, func(c *cluster) {
			c.objects.Edit(imagesRef, func(object map[string]any) { object["webhooks"] = nil })
		}},
		{"registered, not served", journal.StepRegisterWebhooks, "EKCO does not serve with the certificate", false, func(c *cluster) { c.begins = nil }},
		{"no effect", journal.StepTryWebhooks, "a pod with image a would get a, not b", false, func(c *cluster) { c.begins = nil }},
		{"registered", journal.StepUnregisterWebhooks, "a webhook is registered", false, func(*cluster) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(actionstest.NewWorld(t))
			c.registered()
			c.reached[certificates[0].Fingerprint] = true
			test.prepare(c)
			input := journal.WebhookInput{}
			if test.replace {
				input.Replace = certificates[0].Fingerprint
			}
			definition := New(c.start(nil))
			record := journal.ActionRecord{Subject: journal.Webhooks}
			record.Request.Input = input
			var err error
			if record.Plan, err = definition.Plan(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			step, context := definition.Steps[test.step], actions.StepContext{Action: record}
			if proof, err := step.Prove(t.Context(), context); err != nil || proof.Done || proof.Missing != test.missing {
				t.Errorf("before: %+v, %v", proof, err)
			}
			for range 2 {
				if _, err := step.Do(t.Context(), context); err != nil {
					t.Fatal(err)
				}
				if proof, err := step.Prove(t.Context(), context); err != nil || !proof.Done {
					t.Errorf("after: %+v, %v", proof, err)
				}
			}
			if c.made > 2 {
				t.Errorf("%d certificates were created", c.made-1)
			}
		})
	}
}

// renewSecret puts the second certificate into the Secret.
func (c *cluster) renewSecret() {
	c.T.Helper()
	c.made++
	if err := (webhook.Cluster{Objects: c.objects}).Store(c.T.Context(), certificates[1]); err != nil {
		c.T.Fatal(err)
	}
}

func TestThePlanFollowsTheSettings(t *testing.T) {
	register := []string{journal.StepWebhookCertificate, journal.StepWebhookService, journal.StepTrustWebhook, journal.StepServeWebhooks, journal.StepRegisterWebhooks}
	for _, test := range []struct {
		settings webhook.Settings
		want     []string
	}{
		{settings, append(slices.Clone(register), journal.StepTryWebhooks)},
		{webhook.Settings{PriorityClass: "x"}, register},
		{webhook.Settings{}, []string{journal.StepUnregisterWebhooks}},
	} {
		plan, err := New(&Webhooks{Cluster: webhook.Cluster{Settings: test.settings}}).Plan(t.Context(), journal.ActionRecord{})
		var got []string
		for i, step := range plan.Steps {
			got = append(got, step.ID)
			if step.Domains == nil || len(step.Domains) != 0 || step.Timeout == 0 || i > 0 && !slices.Equal(step.After, got[i-1:i]) {
				t.Errorf("the step is %+v", step)
			}
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%v: the steps are %q, want %q", err, got, test.want)
		}
	}
}

// registeredByOlder registers one webhook like an older EKCO, whose certificate is lost.
func (c *cluster) registeredByOlder() {
	c.objects.Put(imagesRef, `{"webhooks":[{"name":"pod-image-overrides.kurl.sh","clientConfig":{"caBundle":"eA=="}}]}`)
	c.known[webhook.NameImages] = true
	c.request(nil)
}

func TestTheOrderOfChanges(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(c *cluster)
		want    []string
	}{
		"first registration": {func(c *cluster) { c.request(nil) }, []string{
			"create secrets kurl/ekco-webhook", "create services kurl/ekco", "serve with certificate 1", "create " + imagesRef.String(),
			"create priorityclasses node-critical", "create " + priorityRef.String(),
		}},
		"renewal": {func(c *cluster) { c.registered(); c.request(certificates[0]) }, []string{
			"update secrets kurl/ekco-webhook", "update " + imagesRef.String(), "update " + priorityRef.String(), "serve with certificate 2",
			"update " + imagesRef.String(), "update " + priorityRef.String(),
		}},
		"restart": {func(c *cluster) { c.registered(); c.begins = nil; c.request(nil) }, []string{
			"serve with certificate 1", "update " + imagesRef.String(), "update " + priorityRef.String(),
		}},
		"lost Secret": {func(c *cluster) { c.registered(); c.objects.Remove(webhook.SecretRef); c.request(nil) }, []string{
			"create secrets kurl/ekco-webhook", "update " + imagesRef.String(), "update " + priorityRef.String(), "serve with certificate 2",
			"update " + imagesRef.String(), "update " + priorityRef.String(),
		}},
		"registered by an older EKCO": {(*cluster).registeredByOlder, []string{
			"create secrets kurl/ekco-webhook", "create services kurl/ekco", "update " + imagesRef.String(), "serve with certificate 1",
			"update " + imagesRef.String(), "create priorityclasses node-critical", "create " + priorityRef.String(),
		}},
		"removal": {func(c *cluster) { c.registered(); c.settings = webhook.Settings{}; c.request(nil) }, []string{
			"delete " + imagesRef.String(), "delete " + priorityRef.String(), "stop",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				c := newCluster(w)
				test.prepare(c)
				c.RunToEnd(c.config())
				if !slices.Equal(c.log, test.want) || w.LastLine() != "ended done" {
					w.T.Errorf("it did %q, want %q; %q", c.log, test.want, w.Story())
				}
				c.outcome()
			})
		})
	}
}

// failure returns the last error of a step.
func (c *cluster) failure(step string) string { return c.Record().Steps[step].LastError }

func TestNothingIsRegisteredUntilTheServerIsReached(t *testing.T) {
	for name, test := range map[string]struct {
		broken, repaired func(c *cluster)
		want             string
	}{
		"a Service without an address": {
			func(c *cluster) {
				c.objects.Put(webhook.ServiceRef, `{"spec":{"clusterIP":"","externalName":""}}`)
			},
			func(c *cluster) {
				c.objects.Remove(webhook.ServiceRef)
				c.objects.Put(webhook.ServiceRef, `{"spec":{}}`)
			},
			"Service kurl/ekco has no address; delete it (kubectl -n kurl delete service ekco)",
		},
		"no route": {
			func(c *cluster) { c.unreachable.Store(true) }, func(c *cluster) { c.unreachable.Store(false) }, "no route to host",
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				c := newCluster(w)
				test.broken(c)
				c.request(nil)
				running := c.Start(c.config())
				c.Pass(3 * time.Minute)
				if got := c.failure(journal.StepServeWebhooks); !strings.Contains(got, test.want) || c.objects.Object(imagesRef) != nil {
					w.T.Errorf("the step failed with %q, registered is %v", got, c.objects.Object(imagesRef))
				}
				c.Pass(5 * time.Hour) // more failures than stall an action
				test.repaired(c)
				running.End()
				if w.LastLine() != "ended done" {
					w.T.Errorf("the action: %q", w.Story())
				}
				c.outcome()
			})
		})
	}
}

func TestAMissingPriorityClassOfAUserIsNamed(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		c := newCluster(w)
		c.settings.PriorityClass = "mine"
		c.request(nil)
		running := c.Start(c.config())
		c.Pass(time.Minute)
		if got := c.failure(journal.StepRegisterWebhooks); !strings.Contains(got, "create the priority class mine: EKCO creates only the priority class node-critical; create mine yourself") {
			w.T.Errorf("the step failed with %q", got)
		}
		if c.objects.Object(imagesRef) == nil || c.objects.Object(priorityRef) != nil {
			w.T.Errorf("it did %q", c.log)
		}
		c.objects.Put(rook.PriorityClassRef("mine"), `{"value":7}`)
		running.End()
		if w.LastLine() != "ended done" || c.objects.Object(rook.PriorityClassRef("mine"))["value"] != 7.0 {
			w.T.Errorf("the action: %q", w.Story())
		}
		c.outcome()
	})
}

func TestAnExistingPriorityClassIsNotChanged(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		c := newCluster(w)
		c.objects.Put(rook.PriorityClassRef(rook.NodeCritical), `{"value":7}`)
		c.request(nil)
		c.RunToEnd(c.config())
		if value := c.objects.Object(rook.PriorityClassRef(rook.NodeCritical))["value"]; value != 7.0 {
			w.T.Errorf("its value is %v", value)
		}
		c.outcome()
	})
}

// TestOtherSettingsDuringAnAction: an EKCO with other settings continues the action of a former one until it is
// cancelled.
func TestOtherSettingsDuringAnAction(t *testing.T) {
	for name, other := range map[string]webhook.Settings{
		"no webhook": {}, "no overrides": {PriorityClass: rook.NodeCritical},
		"other overrides": {Overrides: []webhook.Override{{Original: "c", Replacement: "d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				c := newCluster(w)
				c.unreachable.Store(true)
				c.request(nil)
				running := c.Start(c.config())
				c.Pass(time.Second)
				running.Halt()
				c.unreachable.Store(false)
				c.settings = other
				c.RunToEnd(c.config())
				if w.LastLine() != "ended done" {
					w.T.Errorf("the action: %q", w.Story())
				}
				c.outcome()
			})
		})
	}
}

func TestTheFactsAreReadFromTheClusterAndTheServer(t *testing.T) {
	c := newCluster(actionstest.NewWorld(t))
	read := func() (journal.WebhookFacts, bool) {
		t.Helper()
		facts, exist, err := c.webhooks(nil).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return facts, exist
	}
	c.start(nil)
	if facts, exist := read(); !exist || facts.Certificate.Problem != "Secret kurl/ekco-webhook does not exist" || facts.Service || facts.Serving != "" || facts.Configurations != nil {
		t.Errorf("before: %+v, %t", facts, exist)
	}
	c.registered()
	c.start(nil)
	facts, exist := read()
	certificate := certificates[0]
	if !exist || !facts.Service || facts.Serving != certificate.Fingerprint || len(facts.Configurations) != 2 || facts.Certificate != (journal.WebhookCertificate{
		Fingerprint: certificate.Fingerprint, NotBefore: certificate.NotBefore.UTC(), NotAfter: certificate.NotAfter.UTC(),
	}) {
		t.Errorf("registered: %+v, %t", facts, exist)
	}
	c.settings = webhook.Settings{}
	if facts, exist := read(); !exist || len(facts.Configurations) != 2 || facts.Certificate != (journal.WebhookCertificate{}) {
		t.Errorf("without settings: %+v, %t", facts, exist)
	}
	c.objects.Remove(imagesRef)
	c.objects.Remove(priorityRef)
	c.server.with = nil
	if facts, exist := read(); exist {
		t.Errorf("without anything: %+v", facts)
	}
	c.objects.Forbid("get mutatingwebhookconfigurations " + webhook.NameImages)
	if _, _, err := c.webhooks(nil).Read(t.Context()); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("forbidden: %v", err)
	}
}
