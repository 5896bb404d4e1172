package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// client reads and scales.
type client struct{ objects *kubesim.Objects }

func (c client) Read(ctx context.Context, of journal.Subject) (journal.MonitoringFacts, error) {
	return Object(c.objects).Read(ctx, of)
}

func (c client) Scale(ctx context.Context, of journal.Subject, replicas int) (journal.MonitoringFacts, error) {
	return scale(ctx, c.objects, of, replicas)
}

// installed returns a client of a cluster with such a Prometheus, and its subject.
func installed(object string) (client, *kubesim.Objects, journal.Subject) {
	objects := kubesim.NewObjects()
	of := journal.MonitoringPrometheus
	of.UID = objects.Put(Ref(of), object)
	return client{objects}, objects, of
}

func TestOnlyTheReplicasAreChanged(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"a number": {`{"spec":{"replicas":2,"later":{"x":[1]}},"status":{"a":1}}`, `{"later":{"x":[1]},"replicas":3}`},
		"none":     {`{"spec":{"later":{"x":[1]}}}`, `{"later":{"x":[1]},"replicas":3}`},
	} {
		client, objects, of := installed(test.before)
		set, err := client.Scale(t.Context(), of, 3)
		read, readErr := client.Read(t.Context(), of)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if want := (journal.MonitoringFacts{UID: of.UID, Generation: 2, Replicas: 3}); set != want || read != want {
			t.Errorf("%s: set %+v, read %+v", name, set, read)
		}
		raw, err := objects.ReadObject(t.Context(), Ref(of))
		var now struct{ Spec json.RawMessage }
		if err := errors.Join(err, json.Unmarshal(raw, &now)); err != nil || string(now.Spec) != test.after {
			t.Errorf("%s: %v: it is %s", name, err, now.Spec)
		}
		if _, err := client.Scale(t.Context(), of, 3); err != nil || objects.Calls("patch prometheuses") != 1 {
			t.Errorf("%s: done again: %v, %d patches", name, err, objects.Calls("patch prometheuses"))
		}
	}
}

func TestAnObjectWithoutANumberHasOneReplica(t *testing.T) {
	client, objects, of := installed(`{"spec":{}}`)
	if read, err := client.Read(t.Context(), of); err != nil || read.Replicas != 1 {
		t.Errorf("%v: read %+v", err, read)
	}
	if _, err := client.Scale(t.Context(), of, 1); err != nil || objects.Calls("patch prometheuses") != 0 {
		t.Errorf("scaled to what it has: %v", err)
	}
}

// TestAnotherWhoWasFasterIsNotOverwrittenUnseen: another EKCO, or a person.
func TestAnotherWhoWasFasterIsNotOverwrittenUnseen(t *testing.T) {
	for name, before := range map[string]string{"a number": `{"spec":{"replicas":1}}`, "none": `{"spec":{}}`} {
		client, objects, of := installed(before)
		others := 0
		objects.BeforeEffect = func(string) {
			if others++; others < 3 {
				objects.Edit(Ref(of), func(object map[string]any) { object["spec"] = map[string]any{"replicas": 5 + others} })
			}
		}
		set, err := client.Scale(t.Context(), of, 2)
		if err != nil || set.Replicas != 2 || objects.Calls("patch prometheuses") != 3 {
			t.Errorf("%s: %v: set %+v with %d patches", name, err, set, objects.Calls("patch prometheuses"))
		}
	}
	client, objects, of := installed(`{"spec":{"replicas":1}}`)
	objects.BeforeEffect = func(string) {
		objects.Edit(Ref(of), func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			spec["replicas"] = spec["replicas"].(float64) + 3
		})
	}
	if _, err := client.Scale(t.Context(), of, 2); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("against somebody who is always faster: %v", err)
	}
}

func TestAnotherObjectOfTheNameIsLeftAlone(t *testing.T) {
	client, objects, of := installed(`{"spec":{"replicas":1}}`)
	objects.Remove(Ref(of))
	if _, err := client.Scale(t.Context(), of, 2); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	objects.Put(Ref(of), `{"spec":{"replicas":1}}`)
	if _, err := client.Scale(t.Context(), of, 2); !errors.Is(err, kube.ErrOtherUID) || objects.Calls("patch prometheuses") != 0 {
		t.Errorf("another: %v", err)
	}
}

func TestAWebhookThatMakesAnotherNumberIsAnError(t *testing.T) {
	client, objects, of := installed(`{"spec":{"replicas":1}}`)
	objects.OnWrite = func(_ kube.Ref, object map[string]any) { object["spec"] = map[string]any{"replicas": 1} }
	if _, err := client.Scale(t.Context(), of, 2); err == nil || !strings.Contains(err.Error(), "stored something else: it has 1 replicas") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatIsLostIsFoundDone(t *testing.T) {
	client, objects, of := installed(`{"spec":{"replicas":1}}`)
	objects.LoseAnswer("patch " + Ref(of).String())
	if _, err := client.Scale(t.Context(), of, 2); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("the lost answer: %v", err)
	}
	if set, err := client.Scale(context.WithoutCancel(t.Context()), of, 2); err != nil || set.Generation != 2 {
		t.Errorf("%v: set %+v", err, set)
	}
}
