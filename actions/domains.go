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

// Domains lets the steps of different actions take turns where they change the same.
// [fsm.Domains] judges; whoever owns the state asks it. It must be safe for concurrent
// use.
type Domains interface {
	// Take lets the steps have their domains, or says what stands in their way; whoever
	// has to wait is told by [Inbox.Recheck] when its turn has come. An error says that
	// it cannot be told.
	Take(ctx context.Context, claim fsm.Claim) (taken fsm.Taken, ok bool, err error)
	// Leave takes back what was asked for or let, if nothing came of it.
	Leave(action, step string)
}

// NoDomains is for planned steps that change nothing which others might change, or
// take so long that nobody may have to wait for them. A step whose plan says nothing
// takes all domains of its kind, and one step at least has to take some: a plan that
// names none is taken for one from before there were domains.
var NoDomains = []string{}

// HoldDomains is the hold of a step that waits for another action's.
const HoldDomains = "Domains"

// quietWait is how long a step waits for its turn before that is put on record: most
// waits are for a step that takes a moment.
const quietWait = 3 * time.Second

// fillDomains fills in what steps take that do not say so themselves.
func (k *Kind) fillDomains(steps []journal.PlannedStep) {
	for i := range steps {
		if steps[i].Domains == nil && steps[i].Does != DoesGate {
			steps[i].Domains = k.Domains
		}
	}
}

// checkDomains reports what a step takes that its kind is not known to change, and a
// plan of which nobody could tell later that its steps take none.
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

// takesDomains reports whether the steps of the group must be let in before they start.
func (a *run) takesDomains(g *group) bool {
	return a.cfg.Domains != nil && len(g.domains) > 0 && !a.record.Request.DryRun
}

// takeDomains asks for the domains of steps that may start otherwise. Once they have them, the preflights that are
// asked last are asked again: another action may have ended since, and left things worse.
func (a *run) takeDomains(g *group, steps []*stepState, checks []Check, start func([]Check)) {
	claim := fsm.Claim{Action: a.record.ID, Domains: g.domains}
	g.busy = true
	for _, s := range steps {
		s.busy = true
		claim.Steps = append(claim.Steps, s.planned.ID)
	}
	if g.claimed != claim.Steps[0] {
		a.leaveDomains(g)
		g.claimed = claim.Steps[0]
	}
	var names []string
	for _, check := range checks {
		if a.kind.askedLast(check.Preflight) {
			names = append(names, check.Preflight)
		}
	}
	looking, record, asking := a.looking, a.contextOf(steps[0].planned).Action, a.asks(g, claim.Steps[0])
	asking.begin(HoldDomains)
	a.async(func() func() {
		taken, ok, err := a.cfg.Domains.Take(looking, claim)
		var again []Check
		var unasked error
		if ok {
			again, unasked = a.check(looking, a.kind, record, names, asking)
		}
		return func() {
			a.asked(asking)
			free(g, steps)
			refused := a.kind.gravest(a.heldForLoss(a.lasting(again)), a.record)
			switch {
			case a.stopping, a.looking.Err() != nil:
				a.leaveDomains(g)
			case err != nil:
				a.block(g, steps[0], Check{HoldDomains, Hold("cannot check whether another action changes the same: " + err.Error()).About("unchecked")})
			case !ok:
				a.waitForDomains(g, steps[0], taken)
			case unasked != nil:
				a.leaveDomains(g)
				a.block(g, steps[0], Check{HoldDomains, Hold("cannot repeat the last preflights: " + unasked.Error()).About("unasked")})
			case refused.Verdict.Kind == VerdictHold:
				a.leaveDomains(g)
				a.block(g, steps[0], refused)
			case refused.Verdict.Kind == VerdictAbandon: // the next look ends the action
				a.leaveDomains(g)
				g.wait(a.cfg.Retry)
			default:
				g.claimed = "" // what starts has it from now on
				start(answered(checks, again))
			}
		}
	})
}

// answered returns the checks with the newer answers.
func answered(checks, again []Check) []Check {
	checks = slices.Clone(checks)
	for i := range checks {
		if at := slices.IndexFunc(again, func(c Check) bool { return c.Preflight == checks[i].Preflight }); at >= 0 {
			checks[i] = again[at]
		}
	}
	return checks
}

// waitForDomains makes the group wait for another action's step, at first without a word.
func (a *run) waitForDomains(g *group, first *stepState, taken fsm.Taken) {
	if g.waitsFrom.IsZero() {
		g.waitsFrom = time.Now()
	}
	if g.heldStep == "" && time.Since(g.waitsFrom) < quietWait {
		g.wait(a.cfg.Retry)
		return
	}
	a.block(g, first, Check{HoldDomains, Hold(taken.Reason()).About(taken.By)})
}

// leaveDomains gives up what the group has asked for, if it has.
func (a *run) leaveDomains(g *group) {
	if g.claimed != "" {
		a.cfg.Domains.Leave(a.record.ID, g.claimed)
	}
	g.claimed, g.waitsFrom = "", time.Time{}
}
