package kotsadm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmkotsadm "github.com/replicatedhq/ekco/fsm/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const single = `{"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"rqlite:8","args":["-bootstrap-expect=1"]}]}}}}`

// database is what an action is about: a StatefulSet whose controller makes its replicas
// ready some time after each change.
type database struct {
	*actionstest.World
	objects *kubesim.Objects
	subject journal.Subject
	// readyAfter is that time; zero means never.
	readyAfter time.Duration
	looks      int
}

func installed(w *actionstest.World, content string) *database {
	d := &database{World: w, objects: kubesim.NewObjects(), subject: journal.KotsadmDatabase, readyAfter: 20 * time.Second}
	terms, err := fsm.TermsByKind(fsmkotsadm.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	terms[journal.ActionScaleKotsadm] = fsm.Terms{Rules: actionstest.Rules(), Domains: terms[journal.ActionScaleKotsadm].Domains}
	w.Terms = terms
	d.subject.UID = d.objects.Put(Ref, content)
	d.objects.AfterEffect = func(string) {
		if d.readyAfter > 0 {
			time.AfterFunc(d.readyAfter, d.ready)
		}
	}
	return d
}

// ready is the controller's work.
func (d *database) ready() {
	if _, err := d.objects.ReadObject(context.Background(), Ref); err != nil {
		return // it is gone
	}
	d.objects.Edit(Ref, func(object map[string]any) {
		replicas := object["spec"].(map[string]any)["replicas"]
		object["status"] = map[string]any{
			"observedGeneration": object["metadata"].(map[string]any)["generation"],
			"replicas":           replicas, "readyReplicas": replicas, "updatedReplicas": replicas,
		}
	})
}

func (d *database) ask() {
	d.T.Helper()
	d.Request(d.subject, journal.ActionRequested{Kind: journal.ActionScaleKotsadm})
}

func (d *database) definition() actions.Definition {
	return New(d.objects, time.Minute, func() { d.looks++ })
}

// outcome is what has become of it: its generation tells how often it changed.
func (d *database) outcome() string {
	facts, err := Object(d.objects).Read(d.T.Context(), d.subject)
	if errors.Is(err, kube.ErrNotFound) {
		return "gone"
	}
	if err != nil {
		d.T.Fatal(err)
	}
	return fmt.Sprintf("%s replicas, generation %d", facts.Size(), facts.Generation)
}
