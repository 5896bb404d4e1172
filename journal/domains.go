package journal

import (
	"slices"
	"strings"
	"time"
)

// The domains that steps of more than one capability may change.
const (
	// DomainNodes is which Nodes there are.
	DomainNodes = "nodes"
	// DomainControlPlane is etcd's members and what kubeadm says of the primaries.
	DomainControlPlane = "control-plane"
	// DomainStorage is where the cluster's data lies, and in how many copies.
	DomainStorage = "storage"
)

const hostDomain = "host/"

// DomainHost is the files of a host: one task at a time changes them. Steps of every kind may take it.
func DomainHost(node string) string { return hostDomain + node }

// HostOf returns the node whose [DomainHost] it is.
func HostOf(domain string) (node string, is bool) { return strings.CutPrefix(domain, hostDomain) }

// Occupies returns the domains that steps of the action have for themselves at the
// given time, each once, with the step that has it: of those that are under way, and of
// those that keep theirs until their proof. A dry run changes nothing and has none.
func (r ActionRecord) Occupies(now time.Time) map[string]string {
	return r.domains(func(step StepRecord, planned PlannedStep) bool { return step.occupies(planned, now) })
}

// Retains returns those of the domains that it occupies which are no new ones to these
// steps, when they start: what they have themselves, and what any step keeps until its
// proof. To an action that turns back none is new: nobody ends what it left open.
func (r ActionRecord) Retains(now time.Time, steps []string) map[string]string {
	return r.domains(func(step StepRecord, planned PlannedStep) bool {
		own := slices.Contains(steps, planned.ID) || r.Cancelling != nil
		return (own && step.occupies(planned, now)) || (!step.Done() && step.keeps(planned, now))
	})
}

// domains returns the domains of those steps, each once, with the step.
func (r ActionRecord) domains(those func(StepRecord, PlannedStep) bool) map[string]string {
	if r.Request.DryRun {
		return nil
	}
	var domains map[string]string
	for _, steps := range [][]PlannedStep{r.Plan.Steps, r.Plan.Undo} {
		for _, step := range steps {
			if len(step.Domains) == 0 || !those(r.Steps[step.ID], step) {
				continue
			}
			for _, domain := range step.Domains {
				put(&domains, domain, step.ID)
			}
		}
	}
	return domains
}

// occupies reports whether the step has its domains for itself.
func (s StepRecord) occupies(planned PlannedStep, now time.Time) bool {
	return s.Open || (!s.Done() && s.keeps(planned, now))
}

// keeps reports whether the step is within the time for which it may keep its domains.
func (s StepRecord) keeps(planned PlannedStep, now time.Time) bool {
	return planned.KeepsDomains && !s.KeptFrom.IsZero() && now.Before(s.KeptFrom.Add(time.Duration(planned.Timeout)))
}

// keepFrom notes that an attempt begins, which keeps the domains from then on unless
// one before it does already: who fails again and again lets others in between.
func (s *StepRecord) keepFrom(planned PlannedStep, now time.Time) {
	if planned.KeepsDomains && !s.keeps(planned, now) {
		s.KeptFrom = now
	}
}

// NamesDomains reports whether any step of the plan takes a domain.
func (p Plan) NamesDomains() bool {
	return slices.ContainsFunc(slices.Concat(p.Steps, p.Undo), func(step PlannedStep) bool { return len(step.Domains) > 0 })
}

// TakingDomains returns the plan with each step taking the domains. Whoever has the plan
// itself does not see that.
func (p Plan) TakingDomains(domains []string) Plan {
	p.Steps, p.Undo = slices.Clone(p.Steps), slices.Clone(p.Undo)
	for _, steps := range [][]PlannedStep{p.Steps, p.Undo} {
		for i := range steps {
			steps[i].Domains = domains
		}
	}
	return p
}
