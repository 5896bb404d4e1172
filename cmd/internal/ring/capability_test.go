package ring

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// switches is a machine that is only there.
type switches struct{ lampMachine }

func (switches) Name() string { return "switch" }

func TestAKindOfActionThatIsOnOneFloorOnlyIsAMistake(t *testing.T) {
	light := fsm.ActionKind{Name: "light-lamp", Machine: "switch", Rules: []string{fsm.RulePaused, fsm.RuleBackOff}}
	done := actions.Definition{Kind: "light-lamp"}
	with := func(kinds []fsm.ActionKind, definitions ...actions.Definition) Capability {
		return Capability{
			Fsm:     fsm.Capability{Machine: switches{}, Kinds: kinds},
			Actions: func(kube.API) []actions.Definition { return definitions },
		}
	}
	both := []fsm.ActionKind{light}
	for name, test := range map[string]struct {
		all Capabilities
		ok  bool
	}{
		"on both":        {Capabilities{with(both, done)}, true},
		"only decided":   {Capabilities{with(both)}, false},
		"only done":      {Capabilities{with(nil, done)}, false},
		"done twice":     {Capabilities{with(both, done, done)}, false},
		"decided twice":  {Capabilities{with([]fsm.ActionKind{light, light}, done)}, false},
		"none whatever":  {Capabilities{{}}, true},
		"nothing at all": {nil, true},
	} {
		kinds, err := test.all.kinds(nil)
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
		if name == "on both" && (len(kinds) != 1 || !slices.Equal(kinds[0].Rules, []string{fsm.RulePaused})) {
			t.Errorf("the runner gets %+v", kinds)
		}
	}
}

func TestWhatACapabilityDoesHasWordsWithoutSayingThemTwice(t *testing.T) {
	own := []words.Action{{Kind: kindRenew, Verb: "renew the bulb of", Noun: "lamp"}}
	lamp := Capability{Fsm: fsm.Capability{Machine: lampMachine{}, Kinds: lampKinds()}, Words: words.Component{Name: "lamp", Actions: own}}
	v := Capabilities{lamp}.Vocabulary()
	if light, renew := v.Verb(kindLight), v.Verb(kindRenew); light != "light" || renew != "renew the bulb of" {
		t.Errorf("EKCO may %s and %s", light, renew)
	}
	event := journal.Decoded{Event: journal.Event{Type: journal.TypeThingGone}, Body: &journal.ThingGone{Machine: lampName}}
	if !v.Belongs("lamp", event, nil) {
		t.Error("what the engine tells of lamps is none of theirs")
	}
	if len(lamp.Words.Actions) != 1 {
		t.Errorf("the capability's own words are %+v now", lamp.Words.Actions)
	}
}
