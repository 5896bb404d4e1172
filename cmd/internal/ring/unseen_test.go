package ring

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// putOut is a house whose porch lamp is put out again before anybody looks.
type putOut struct{ *house }

func (p putOut) Porch(ctx context.Context) (map[string]lampFacts, error) {
	all, err := p.house.Porch(ctx)
	porch := all["porch"]
	porch.Lit = false
	return map[string]lampFacts{"porch": porch}, err
}

func TestAnEffectThatIsUndoneBeforeAnybodySeesItIsNotTheEnd(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.list = func() Capabilities {
			return Capabilities{h.nodes(), lamps(putOut{h}, lampPolicy{Nodes: 2, After: time.Minute})}
		}
		h.server.Put(observerstest.Node("b", "uid-b"))
		h.put("desk", lampFacts{UID: "uid-desk", Lit: true, Bulb: "E27"})
		in := h.live(nil)
		pass(10 * time.Minute)
		h.did("switch-on porch", "switch-on porch")
		if !strings.Contains(h.history("json"), `"rule":"`+fsm.RuleContested+`"`) {
			t.Error("it is not lit for the third time within an hour, and nothing says so")
		}
		pass(time.Hour)
		h.did("switch-on porch", "switch-on porch", "switch-on porch")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
