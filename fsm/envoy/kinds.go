package envoy

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// cooldown is the minimum time between two restarts, so that EKCO does not delete all pods of a cluster at once if they
// all hang.
const cooldown = 10 * time.Second

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionRestartEnvoy, Verb: "restart-envoy", Machine: Machine,
		Rules: []string{
			fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff, fsm.RuleOneAtATime, fsm.RuleCooldown,
		},
		Cooldown: cooldown, Turn: "only one Envoy pod is replaced at a time", StalledYields: true,
		SwitchedOff: func(p fsm.Policy) string {
			if policyOf(p).Restart {
				return ""
			}
			return "restart_failed_envoy_pods is off"
		},
	}}
}
