package words

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestAComponentHasWhatIsAboutItsThingsAndWhatIsDoneToThem(t *testing.T) {
	v := New(
		Component{Name: "lamp", Machine: "lamp", Actions: []Action{{Kind: "light-lamp"}}, Rows: []Row{
			{Type: journal.TypePodGone},
			{Type: journal.TypeThingObserved, About: "Fixture"},
		}},
		Component{Name: "stove", Machine: "stove", Actions: []Action{{Kind: "heat-stove"}}},
		Component{Name: "bulb", Rows: []Row{{Type: journal.TypeThingGone, About: "Bulb"}}},
	)
	kinds := map[string]journal.ActionKind{"light-hall-1": "light-lamp", "heat-hall-2": "heat-stove"}
	kindOf := func(action string) journal.ActionKind { return kinds[action] }
	fixture := journal.Subject{Kind: "Fixture", Name: "hall"} // what both are made of
	for _, test := range []struct {
		name    string
		event   journal.Event
		payload journal.Payload
		want    []string
	}{
		{"facts of a lamp", journal.Event{Type: journal.TypeThingObserved, Subject: fixture}, &journal.ThingObserved{Machine: "lamp"}, []string{"lamp"}},
		{"facts of a stove", journal.Event{Type: journal.TypeThingObserved, Subject: fixture}, &journal.ThingObserved{Machine: "stove"}, []string{"stove"}},
		{"a step of a lamp's machine", journal.Event{Type: journal.TypeThingTransitioned, Subject: fixture}, &journal.ThingTransitioned{Machine: "lamp"}, []string{"lamp"}},
		{"a stove's end", journal.Event{Type: journal.TypeThingGone, Subject: fixture}, &journal.ThingGone{Machine: "stove"}, []string{"stove"}},
		{"a bulb's end", journal.Event{Type: journal.TypeThingGone, Subject: journal.Subject{Kind: "Bulb"}}, &journal.ThingGone{Machine: "shelf"}, []string{"bulb"}},
		{"a lamp's own type", journal.Event{Type: journal.TypePodGone}, &journal.PodGone{}, []string{"lamp"}},
		{"a lamp's action", journal.Event{Type: journal.TypeActionRequested, Action: "light-hall-1"}, &journal.ActionRequested{Kind: "light-lamp"}, []string{"lamp", "action"}},
		{"a step of a stove's", journal.Event{Type: journal.TypeStepDone, Action: "heat-hall-2"}, &journal.StepDone{}, []string{"stove", "action"}},
		{"a step of nobody's", journal.Event{Type: journal.TypeStepDone, Action: "x"}, &journal.StepDone{}, []string{"action"}},
		{"a refusal for all stoves", journal.Event{Type: journal.TypePolicyRefused}, &journal.PolicyRefused{Kind: "heat-stove"}, []string{"stove", "policy"}},
		{"a person refused a light", journal.Event{Type: journal.TypeActionRefused}, &journal.ActionRefused{Kind: "light-lamp"}, []string{"lamp", "action"}},
		{"a clock", journal.Event{Type: journal.TypeClockJumped}, &journal.ClockJumped{}, []string{"operator"}},
	} {
		var got []string
		for _, component := range v.Components() {
			if v.Belongs(component, journal.Decoded{Event: test.event, Body: test.payload}, kindOf) {
				got = append(got, component)
				if !slices.Contains(v.Types(component), test.event.Type) {
					t.Errorf("%s: %s is not among the types of %s", test.name, test.event.Type, component)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s is of %v, want %v", test.name, got, test.want)
		}
	}
	for component, want := range map[string]bool{"lamp": true, "stove": true, "bulb": true, "policy": false, "operator": false} {
		if v.Shares(component) != want {
			t.Errorf("%s shares types with others: %v", component, !want)
		}
	}
}

func TestEveryTypeOfEventIsInAComponentButThoseOfThings(t *testing.T) {
	v := New()
	for _, entry := range journal.Catalog() {
		belongs := slices.ContainsFunc(v.Components(), func(c string) bool { return slices.Contains(v.Types(c), entry.Type) })
		ofThings := slices.ContainsFunc(thingRows, func(row Row) bool { return row.Type == entry.Type })
		if v.Has(entry.Type) && belongs == ofThings {
			t.Errorf("%s is in a component: %v", entry.Type, belongs)
		}
	}
}

func TestAKubernetesEventKnowsTheVersionOfWhatItIsAbout(t *testing.T) {
	note := func(journal.Event, journal.Payload) Note { return Note{Message: "m"} }
	v := New(Component{
		Name: "lamp", APIVersions: map[string]string{"Fixture": "example.com/v1"},
		Rows: []Row{{Type: journal.TypePodGone, Kubernetes: note}},
	})
	for kind, want := range map[string]string{"Fixture": "example.com/v1", "Other": ""} {
		event := journal.Event{Type: journal.TypePodGone, Subject: journal.Subject{Kind: kind, Name: "hall"}}
		got, said := v.Note(journal.Decoded{Event: event, Body: &journal.PodGone{}})
		if !said || got.APIVersion != want {
			t.Errorf("of a %s: %+v, want version %q", kind, got, want)
		}
	}
}
