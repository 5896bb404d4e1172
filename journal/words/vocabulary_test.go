package words

import (
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

func event(t *testing.T, kind journal.Type, subject journal.Subject, payload any) journal.Decoded {
	t.Helper()
	body, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Event{Seq: 7, Type: kind, Version: 1, Subject: subject, Actor: "operator", Payload: body}.Decoded()
}

// lamps are the words of a capability that no table of the engine knows. It
// borrows its events from pods.
var lamps = Component{
	Name:    "lamp",
	Actions: []Action{{Kind: "light-lamp", Verb: "light", Noun: "lamp"}},
	Rows: []Row{{
		Type: journal.TypePodGone, Tone: Bad, Wakes: true,
		Sentence: Of(func(e journal.Event, _ *journal.PodGone) string { return Object(e.Subject) + " went out" }),
		Log:      Of(func(_ journal.Event, p *journal.PodGone) Line { return Warn("a lamp went out", "on", p.NodeUID) }),
		Kubernetes: Of(func(journal.Event, *journal.PodGone) Note {
			return Note{Reason: "LampOut", Message: "it went out", Warning: true}
		}),
	}},
}

func TestWhatACapabilityBringsShowsUpWithoutAnEditOfTheEngine(t *testing.T) {
	v := New(lamps)
	hall := journal.Subject{Kind: "Lamp", Name: "hall"}
	out := event(t, journal.TypePodGone, hall, journal.PodGone{NodeUID: "u"})
	if got := v.Sentence(out); got != "lamp hall went out" {
		t.Errorf("the sentence is %q", got)
	}
	if line, said := v.Line(out); !said || !cmp.Equal(line, Line{slog.LevelWarn, "a lamp went out", []any{"on", "u"}}) {
		t.Errorf("the log says %+v", line)
	}
	if note, said := v.Note(out); !said || note != (Note{Reason: "LampOut", Message: "it went out", Warning: true, About: hall}) {
		t.Errorf("the Kubernetes Event is %+v", note)
	}
	if v.Tone(out) != Bad || !v.Wakes(out.Event) {
		t.Error("it has no tone, or wakes nobody")
	}
	if got := v.Components(); !slices.Equal(got, []string{"lamp", "action", "policy", "operator", "journal"}) {
		t.Errorf("the components are %v", got)
	}
	if got := v.Types("lamp"); !slices.Equal(got, []journal.Type{journal.TypePodGone}) {
		t.Errorf("the component has %v", got)
	}
	refused := event(t, journal.TypePolicyRefused, journal.ClusterSubject, journal.PolicyRefused{Kind: "light-lamp", Rule: "Paused"})
	if got := v.Sentence(refused); got != "light any lamp: blocked by Paused" {
		t.Errorf("policy says %q", got)
	}
}

func TestWordsForThingsOfOneKindComeBeforeThoseForAll(t *testing.T) {
	rows := []Row{
		{Type: journal.TypeNodeGone, Sentence: Of(func(journal.Event, *journal.NodeGone) string { return "gone" })},
		{Type: journal.TypeNodeGone, About: "Lamp", Tone: Bad, Sentence: Of(func(journal.Event, *journal.NodeGone) string { return "dark" })},
	}
	v := New(Component{Rows: rows})
	for kind, want := range map[string]string{"Lamp": "dark", "Node": "gone", "": "gone"} {
		e := event(t, journal.TypeNodeGone, journal.Subject{Kind: kind}, journal.NodeGone{})
		if got := v.Sentence(e); got != want || (v.Tone(e) == Bad) != (kind == "Lamp") {
			t.Errorf("%q: %q", kind, got)
		}
	}
}

func TestAnEventWithoutWordsIsListedFieldByField(t *testing.T) {
	v := New()
	node := journal.NodeSubject("w", "u")
	for _, test := range []struct {
		event journal.Decoded
		want  string
	}{
		{event(t, journal.TypeNodeGone, node, journal.NodeGone{Reason: "deleted"}), `node.gone about node w: reason="deleted"`},
		{event(t, journal.TypeNodeObserved, node, map[string]any{"role": "worker", "taints": []any{}}), `node.observed about node w: role="worker", taints=[]`},
		{event(t, journal.TypeNodeGone, node, struct{}{}), "node.gone about node w"},
		{event(t, "moon.landed", node, map[string]int{"a": 1}), `moon.landed of version 1 about node w: {"a":1} (decode event 7 (moon.landed): unknown event type)`},
	} {
		if got := v.Sentence(test.event); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		if _, said := v.Line(test.event); said {
			t.Errorf("%s is logged", test.event.Type)
		}
		if _, said := v.Note(test.event); said {
			t.Errorf("%s has a Kubernetes Event", test.event.Type)
		}
	}
	if got := v.Verb("light-lamp"); got != "light-lamp" {
		t.Errorf("the verb of an action that nobody knows is %q", got)
	}
}

func TestEveryRowFitsThePayloadOfItsType(t *testing.T) {
	for _, component := range New().components {
		for _, row := range component.Rows {
			i := slices.IndexFunc(journal.Catalog(), func(e journal.CatalogEntry) bool { return e.Type == row.Type })
			if i < 0 {
				t.Errorf("%s is in no catalogue", row.Type)
				continue
			}
			payload := journal.Catalog()[i].New()
			if row.Sentence == nil || row.Sentence(journal.Event{}, payload) == "" {
				t.Errorf("%s has no sentence", row.Type)
			}
			if row.Kubernetes != nil && row.Kubernetes(journal.Event{}, payload).Message == "" {
				t.Errorf("%s has an empty Kubernetes Event", row.Type)
			}
			if row.Log != nil && row.Log(journal.Event{}, payload).Message == "" && row.Type != journal.TypeOperatorStarted {
				t.Errorf("%s has an empty line for the log", row.Type)
			}
		}
	}
}

func TestTwoRowsForOneTypeAreAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("they were taken")
		}
	}()
	New(lamps, lamps)
}
