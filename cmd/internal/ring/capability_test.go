package ring

import (
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
)

func TestAKindOfActionThatIsOnOneFloorOnlyIsAMistake(t *testing.T) {
	decided := Capability{Fsm: fsm.Capability{Kinds: []fsm.ActionKind{{Name: "light-lamp"}}}}
	done := []actions.Definition{{Kind: "light-lamp"}}
	for name, test := range map[string]struct {
		all  Capabilities
		done []actions.Definition
		ok   bool
	}{
		"on both":        {Capabilities{decided}, done, true},
		"only decided":   {Capabilities{decided}, nil, false},
		"only done":      {Capabilities{{}}, done, false},
		"none whatever":  {Capabilities{{}}, nil, true},
		"nothing at all": {nil, nil, true},
	} {
		if err := test.all.check(test.done); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
