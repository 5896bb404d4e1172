package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmwebhook "github.com/replicatedhq/ekco/fsm/webhook"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/webhook"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// created is when the certificates of the tests were created. The decisions of the tests use this time, too.
var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// certificates are those that EKCO creates in a test, in this order. The first is also that of the Secret at the begin.
var certificates = func() (all []*webhook.Certificate) {
	for range 4 {
		certificate, err := webhook.NewCertificate(created)
		if err != nil {
			panic(err)
		}
		all = append(all, certificate)
	}
	return all
}()

// settings ask for both webhooks.
var settings = webhook.Settings{Overrides: []webhook.Override{{Original: "a", Replacement: "b"}}, PriorityClass: rook.NodeCritical}

// cluster is a cluster with at most one running EKCO. Its methods may be called in a bubble only.
type cluster struct {
	*actionstest.World
	objects  *kubesim.Objects
	settings webhook.Settings
	// server is the server of the newest EKCO. begins is the certificate with which the first EKCO serves at the begin.
	server *server
	begins *webhook.Certificate
	// made is the number of certificates that EKCO has created.
	made int
	// unreachable is set while the server cannot be reached through the Service.
	unreachable atomic.Bool
	// log has what happens to the server and to the objects, in order. problems are violations of the order.
	log, problems []string
	// reached has the fingerprints with which the server was reached; known has the registered webhooks.
	reached, known map[string]bool
}

func newCluster(w *actionstest.World) *cluster {
	c := &cluster{World: w, objects: kubesim.NewObjects(), settings: settings, reached: map[string]bool{}, known: map[string]bool{}}
	c.objects.OnWrite = func(ref kube.Ref, object map[string]any) {
		if spec, is := object["spec"].(map[string]any); is && ref == webhook.ServiceRef && spec["clusterIP"] == nil {
			spec["clusterIP"] = "10.96.0.9"
		}
	}
	c.objects.AfterEffect = func(effect string) { c.happened(effect) }
	return c
}

// registered makes everything exist as after a registration with the first certificate. The first EKCO serves with it.
func (c *cluster) registered() {
	c.T.Helper()
	objects := webhook.Cluster{Objects: c.objects, Settings: c.settings}
	err := objects.Store(c.T.Context(), certificates[0])
	for _, name := range c.settings.Wanted() {
		if err == nil {
			c.known[name] = true
			err = objects.Register(c.T.Context(), name, certificates[0].CA)
		}
	}
	if err == nil {
		err = objects.CreateService(c.T.Context())
	}
	if err == nil {
		err = rook.NewPods(c.objects).CreatePriorityClass(c.T.Context(), rook.NodeCritical)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	c.begins, c.made, c.log = certificates[0], 1, nil
}

// happened checks the order after each effect.
func (c *cluster) happened(what string) {
	c.log = append(c.log, what)
	if strings.Contains(what, webhook.SecretRef.Name) {
		return // it changes nothing for API servers
	}
	serving, present := "", map[string]bool{}
	if c.server != nil {
		serving = c.server.Serving()
	}
	registered, err := webhook.Cluster{Objects: c.objects, Settings: c.settings}.Registered(context.Background())
	if err != nil {
		c.problems = append(c.problems, err.Error())
	}
	for _, r := range registered {
		present[r.Name] = true
		if serving != "" && !slices.Contains(r.Trusts, serving) && !slices.Contains(r.Differs, "webhooks") {
			c.problems = append(c.problems, fmt.Sprintf("after %s, the server has a certificate that %s does not trust", what, r.Name))
		}
		if !c.known[r.Name] && !c.reached[serving] {
			c.problems = append(c.problems, fmt.Sprintf("%s was registered before the server was reached", r.Name))
		}
	}
	c.known = present
}

// server is the server of one EKCO.
type server struct {
	*cluster
	fuse *actionstest.Fuse
	with *webhook.Certificate
}

func (s *server) Use(_ context.Context, certificate *webhook.Certificate) error {
	return s.fuse.Around("use", func() error {
		if s.with != certificate && s.Serving() != certificate.Fingerprint {
			s.with = certificate
			s.happened(fmt.Sprint("serve with certificate ", s.number(certificate)))
		}
		return nil
	})
}

func (s *server) Serving() string {
	if s.with == nil {
		return ""
	}
	return s.with.Fingerprint
}

func (s *server) Stop() {
	_ = s.fuse.Around("stop", func() error {
		s.with = nil
		s.happened("stop")
		return nil
	})
}

// number returns the place of a certificate in certificates, from 1.
func (*cluster) number(certificate *webhook.Certificate) int {
	return 1 + slices.IndexFunc(certificates, func(c *webhook.Certificate) bool { return c.Fingerprint == certificate.Fingerprint })
}

// objectsOf are the API server for an EKCO with this fuse.
type objectsOf struct {
	kube.Objects
	fuse *actionstest.Fuse
}

func (o objectsOf) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := o.fuse.Alive(); err != nil {
		return nil, err
	}
	return o.Objects.ReadObject(ctx, ref)
}

func (o objectsOf) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	err = o.fuse.Around("update "+ref.String(), func() (err error) {
		answer, err = o.Objects.ReplaceObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (o objectsOf) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	err = o.fuse.Around("create "+ref.String(), func() (err error) {
		answer, err = o.Objects.CreateObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (o objectsOf) DeleteObject(ctx context.Context, ref kube.Ref, uid string) error {
	return o.fuse.Around("delete "+ref.String(), func() error { return o.Objects.DeleteObject(ctx, ref, uid) })
}

// start returns the webhooks of a new EKCO, which dies with the fuse. Only the first EKCO may serve already.
func (c *cluster) start(fuse *actionstest.Fuse) *Webhooks {
	c.server = &server{cluster: c, fuse: fuse, with: c.begins}
	c.begins = nil
	return c.webhooks(fuse)
}

func (c *cluster) webhooks(fuse *actionstest.Fuse) *Webhooks {
	objects, serves := objectsOf{c.objects, fuse}, c.server
	return &Webhooks{
		Cluster: webhook.Cluster{Objects: objects, Settings: c.settings}, Server: serves, Classes: rook.NewPods(objects),
		Reach: func(ctx context.Context, service corev1.Service, certificate *webhook.Certificate) error {
			switch {
			case service.Spec.ClusterIP == "":
				return webhook.Reach(ctx, service, certificate)
			case c.unreachable.Load():
				return errors.New("no route to host")
			case serves.Serving() != certificate.Fingerprint:
				return fmt.Errorf("the server has certificate %q", serves.Serving())
			}
			c.reached[certificate.Fingerprint] = true
			return nil
		},
		TryPod: func(_ context.Context, pod corev1.Pod) (corev1.Pod, error) {
			container := &pod.Spec.Containers[0]
			registered, err := webhook.Cluster{Objects: c.objects, Settings: c.settings}.Registered(context.Background())
			for _, r := range registered {
				if r.Name == webhook.NameImages && slices.Contains(r.Trusts, serves.Serving()) && container.Image == c.settings.Overrides[0].Original {
					container.Image = c.settings.Overrides[0].Replacement
				}
			}
			// Another webhook adds a container.
			pod.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "proxy"}}, pod.Spec.Containers...)
			return pod, err
		},
		Create: func() (*webhook.Certificate, error) {
			c.made++
			return certificates[(c.made-1)%len(certificates)], nil
		},
		Changed: func() {},
	}
}

// request requests an action with the input of the machine.
func (c *cluster) request(replace *webhook.Certificate) {
	c.T.Helper()
	input := journal.WebhookInput{Settings: c.settings.Hash()}
	if replace != nil {
		input.Replace = replace.Fingerprint
	}
	c.Request(journal.Webhooks, journal.ActionRequested{Kind: journal.ActionConfigureWebhooks, Input: input})
}

// config returns the config of an EKCO that was just started.
func (c *cluster) config() actions.Config {
	return c.Config([]actions.Definition{New(c.start(nil))})
}

// settle does what an EKCO does after the action: it decides from the facts, and runs the actions that it requests.
func (c *cluster) settle() {
	c.T.Helper()
	if c.server.fuse.Alive() != nil {
		c.start(nil)
	}
	w := c.webhooks(nil)
	policy := fsm.DefaultPolicy().With(fsmwebhook.Machine, fsmwebhook.Policy{Wanted: c.settings.Wanted(), Settings: c.settings.Hash()})
	for range 2 {
		facts, exist, err := w.Read(c.T.Context())
		if err != nil {
			c.T.Fatal(err)
		}
		if !exist {
			return
		}
		j := fsmtest.New(c.T, policy, fsmwebhook.Capability())
		j.Observe(fsmwebhook.Machine, journal.Webhooks, facts)
		j.Decide()
		rec := j.Open(journal.Webhooks)
		if rec == nil {
			return
		}
		next := actionstest.NewWorld(c.T)
		next.Request(journal.Webhooks, rec.Request)
		next.RunToEnd(next.Config([]actions.Definition{New(w)}))
	}
	c.problems = append(c.problems, "EKCO does not come to rest")
}

// outcome describes the cluster after the action, and after the actions that EKCO requests because it was restarted.
func (c *cluster) outcome() string {
	c.T.Helper()
	c.settle()
	is := webhook.Cluster{Objects: c.objects, Settings: c.settings}
	var lines []string
	registered, err := is.Registered(c.T.Context())
	for _, r := range registered {
		lines = append(lines, fmt.Sprintf("%s trusts %d", r.Name, len(r.Trusts)))
		if len(r.Differs) > 0 || r.Trusts[0] != c.server.Serving() {
			c.problems = append(c.problems, fmt.Sprintf("%s differs in %q and trusts %q, not %q", r.Name, r.Differs, r.Trusts, c.server.Serving()))
		}
	}
	if certificate, unusable := is.Certificate(c.T.Context()); unusable != nil || len(registered) > 0 && certificate.Fingerprint != c.server.Serving() {
		c.problems = append(c.problems, fmt.Sprintf("the server does not use the certificate of the Secret: %v", unusable))
	}
	if err != nil || len(c.problems) > 0 {
		c.T.Errorf("%v, %q, after %q", err, c.problems, c.log)
	}
	secrets := c.objects.Count("create "+webhook.SecretRef.String()) + c.objects.Count("update "+webhook.SecretRef.String())
	return fmt.Sprintf("served: %t, %s, Secret written %d times", c.server.Serving() != "", strings.Join(lines, ", "), secrets)
}
