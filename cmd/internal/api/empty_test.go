package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
)

// A script that asks for a key finds it, and a list that it walks is one.
func TestNoKeyOfAStatusIsLeftOutBecauseItIsEmpty(t *testing.T) {
	status := Status{
		Nodes: []NodeStatus{{}}, Things: []ThingStatus{{}}, Next: []fsm.Upcoming{{Never: true, Why: "it is off"}},
		Progress: map[string]map[string]actions.Progress{"a": {"s": {}}},
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	holdsKeys(t, "status", reflect.TypeFor[Status](), got)
	holdsKeys(t, "operator", reflect.TypeFor[OperatorStatus](), got["operator"])
	holdsKeys(t, "journal", reflect.TypeFor[JournalStatus](), got["journal"])
	holdsKeys(t, "api", reflect.TypeFor[apiStatus](), got["api"])
	holdsKeys(t, "clock", reflect.TypeFor[ClockStatus](), got["clock"])
	holdsKeys(t, "node", reflect.TypeFor[NodeStatus](), got["nodes"].([]any)[0])
	holdsKeys(t, "thing", reflect.TypeFor[ThingStatus](), got["things"].([]any)[0])
	holdsKeys(t, "what is to come", reflect.TypeFor[fsm.Upcoming](), got["next"].([]any)[0])
	holdsKeys(t, "progress", reflect.TypeFor[actions.Progress](), got["progress"].(map[string]any)["a"].(map[string]any)["s"])
	if next := got["next"].([]any)[0].(map[string]any); next["at"] != nil || next["why"] != "it is off" || next["never"] != true {
		t.Errorf("to come is %+v", next)
	}
	if strings.Contains(string(encoded), `"as_of":"0001`) || strings.Contains(string(encoded), `"unreachable_since":"0001`) {
		t.Errorf("a time that there is none of is told of: %s", encoded)
	}
	var back Status
	if err := json.Unmarshal(encoded, &back); err != nil || !back.AsOf.IsZero() || !back.Nodes[0].UnreachableSince.IsZero() || !back.Next[0].At.IsZero() || len(back.Progress["a"]) != 1 {
		t.Errorf("read back it is %+v, %v", back, err)
	}
}

func TestNoKeyOfAnExplanationIsLeftOutBecauseItIsEmpty(t *testing.T) {
	encoded, err := json.Marshal(ThingExplanation{})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	holdsKeys(t, "explanation", reflect.TypeFor[ThingExplanation](), got)
}

func holdsKeys(t *testing.T, what string, kind reflect.Type, got any) {
	t.Helper()
	keys, is := got.(map[string]any)
	if !is {
		t.Errorf("%s is %v", what, got)
		return
	}
	for field := range kind.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, there := keys[key]
		switch {
		case key == "":
			continue // embedded: its own package says what is left out
		case !there:
			t.Errorf("%s has no key %q", what, key)
		case value == nil && (field.Type.Kind() == reflect.Slice && key != "facts" || field.Type.Kind() == reflect.Map):
			t.Errorf("%s has no list or map under %q", what, key)
		}
	}
}
