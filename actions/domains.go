package actions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Domains are locks: steps of different actions that change the same domain take turns. The owner of the state
// implements this interface with [fsm.Domains]. Implementations must be safe for concurrent use.
type Domains interface {
	// Take locks the domains of the steps. If another step has one of them, ok is false, and [Inbox.Recheck] is called
	// when these steps may lock them. An error means that Take could not check.
	Take(ctx context.Context, claim fsm.Claim) (taken fsm.Taken, ok bool, err error)
	// Leave withdraws a waiting claim, or unlocks the domains of a step that did not start.
	Leave(action, step string)
}

// NoDomains is for planned steps that do not change what other actions change, and for steps that would block other
// actions for too long. A step with nil Domains locks all domains of its kind. At least one step of a plan must lock a
// domain, because EKCO takes a plan without domains for a plan of an old version.
var NoDomains = []string{}

// HoldDomains is the hold of a step that waits for a domain of another action's step.
const HoldDomains = "Domains"

// unrecordedWait is how long a step waits for its domains before EKCO records the wait. Most waits are shorter.
const unrecordedWait = 3 * time.Second

// fillDomains gives the kind's domains to the steps with nil Domains.
func (k *Kind) fillDomains(steps []journal.PlannedStep) {
	for i := range steps {
		if steps[i].Domains == nil && steps[i].Does != DoesGate {
			steps[i].Domains = k.Domains
		}
	}
}

// checkDomains returns an error if a step locks a domain that its kind does not have, or if no step locks a domain; see
// [NoDomains].
func (k *Kind) checkDomains(plan journal.Plan) error {
	if len(k.Domains) > 0 && !plan.NamesDomains() {
		return fmt.Errorf("no step takes a domain, but its kind has %s: remove them, or name one in a step", strings.Join(k.Domains, ", "))
	}
	for _, step := range slices.Concat(plan.Steps, plan.Undo) {
		for _, domain := range step.Domains {
			if _, host := journal.HostOf(domain); !host && !slices.Contains(k.Domains, domain) {
				return fmt.Errorf("step %q takes domain %q, which its kind does not have", step.ID, domain)
			}
		}
	}
	return nil
}

// takesDomains reports whether the steps of the group need domains before they start.
func (a *run) takesDomains(g *group) bool {
	return a.cfg.Domains != nil && len(g.domains) > 0 && !a.record.Request.DryRun
}

// takeDomains locks the domains of steps whose preflights passed. With the locks, it runs the preflights of
// [Kind.isLastPreflight] again, because an action that ended during the wait may have changed what they check.
func (a *run) takeDomains(g *group, steps []*stepState, checks []Check, start func([]Check)) {
	claim := fsm.Claim{Action: a.record.ID, Domains: g.domains}
	g.busy = true
	for _, s := range steps {
		s.busy = true
		claim.Steps = append(claim.Steps, s.planned.ID)
	}
	if g.claimed != claim.Steps[0] {
		a.dropClaim(g)
		g.claimed = claim.Steps[0]
	}
	var names []string
	for _, check := range checks {
		if a.kind.isLastPreflight(check.Preflight) {
			names = append(names, check.Preflight)
		}
	}
	looking, record, pending := a.looking, a.contextFor(steps[0].planned).Action, a.beginCheck(g, claim.Steps[0])
	pending.addQuestion(HoldDomains)
	a.startAsync(func() func() {
		taken, ok, err := a.cfg.Domains.Take(looking, claim)
		var again []Check
		var unasked error
		if ok {
			again, unasked = a.check(looking, a.kind, record, names, pending)
		}
		return func() {
			a.endCheck(pending)
			endGroupCheck(g, steps)
			refused := a.kind.gravest(a.heldForLoss(a.holdUntilLasting(again)), a.record)
			switch {
			case a.stopping, a.looking.Err() != nil:
				a.dropClaim(g)
			case err != nil:
				a.holdGroup(g, steps[0], Check{HoldDomains, Hold("cannot check whether another action changes the same part of the cluster: " + err.Error()).About("unchecked")})
			case !ok:
				a.waitForDomains(g, steps[0], taken)
			case unasked != nil:
				a.dropClaim(g)
				a.holdGroup(g, steps[0], Check{HoldDomains, Hold("cannot repeat the last preflights: " + unasked.Error()).About("unasked")})
			case refused.Verdict.Kind == VerdictHold:
				a.dropClaim(g)
				a.holdGroup(g, steps[0], refused)
			case refused.Verdict.Kind == VerdictAbandon: // the next examination ends the action
				a.dropClaim(g)
				g.backOff(a.cfg.Retry)
			default:
				g.claimed = "" // from now on the started step has the domains
				start(replaceChecks(checks, again))
			}
		}
	})
}

// replaceChecks replaces checks that were repeated by their new answers.
func replaceChecks(checks, again []Check) []Check {
	checks = slices.Clone(checks)
	for i := range checks {
		if at := slices.IndexFunc(again, func(c Check) bool { return c.Preflight == checks[i].Preflight }); at >= 0 {
			checks[i] = again[at]
		}
	}
	return checks
}

// waitForDomains makes the group wait for another action's step. It records the wait only after unrecordedWait.
func (a *run) waitForDomains(g *group, first *stepState, taken fsm.Taken) {
	if g.waitsFrom.IsZero() {
		g.waitsFrom = time.Now()
	}
	if g.heldStep == "" && time.Since(g.waitsFrom) < unrecordedWait {
		g.backOff(a.cfg.Retry)
		return
	}
	a.holdGroup(g, first, Check{HoldDomains, Hold(taken.Reason()).About(taken.By)})
}

// dropClaim withdraws the group's claim on its domains, if it has one.
func (a *run) dropClaim(g *group) {
	if g.claimed != "" {
		a.cfg.Domains.Leave(a.record.ID, g.claimed)
	}
	g.claimed, g.waitsFrom = "", time.Time{}
}
