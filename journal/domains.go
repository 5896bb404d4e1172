package journal

import (
	"slices"
	"strings"
	"time"
)

// Locks (domains) that steps of several capabilities take.
const (
	// DomainNodes locks the set of Nodes.
	DomainNodes = "nodes"
	// DomainControlPlane locks etcd's members and kubeadm's record of the primaries.
	DomainControlPlane = "control-plane"
	// DomainStorage locks where the cluster's data is, and in how many copies.
	DomainStorage = "storage"
)

const hostDomain = "host/"

// DomainHost is the lock on the files of a host: one task at a time changes them. Steps of every kind may take it.
func DomainHost(node string) string { return hostDomain + node }

// HostOf returns the node of a [DomainHost].
func HostOf(domain string) (node string, is bool) { return strings.CutPrefix(domain, hostDomain) }

// Occupies returns the locks that steps of the action hold at the given time, each once, with the step: running
// steps, and those that keep their locks until they are verified. A dry run has none.
func (r ActionRecord) Occupies(now time.Time) map[string]string {
	return r.domains(func(step StepRecord, planned PlannedStep) bool { return step.occupies(planned, now) })
}

// Retains returns the locks that the action holds and that are not new to these steps: their own locks, and those
// that any step keeps until it is verified. While the action is cancelled, no lock is new, since no other action
// finishes what it left open.
func (r ActionRecord) Retains(now time.Time, steps []string) map[string]string {
	return r.domains(func(step StepRecord, planned PlannedStep) bool {
		own := slices.Contains(steps, planned.ID) || r.Cancelling != nil
		return (own && step.occupies(planned, now)) || (!step.Done() && step.keeps(planned, now))
	})
}

// domains returns the locks of the selected steps, each once, with the step.
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
			_, held := r.Holds[step.ID]
			for _, domain := range step.Domains {
				// After a restart of EKCO, the task of a step that is held may be gone, and the hold may last. If
				// the task runs, the lock on the host itself keeps others out.
				if _, host := HostOf(domain); host && held {
					continue
				}
				put(&domains, domain, step.ID)
			}
		}
	}
	return domains
}

// occupies reports whether the step holds its locks.
func (s StepRecord) occupies(planned PlannedStep, now time.Time) bool {
	return s.Open || (!s.Done() && s.keeps(planned, now))
}

// keeps reports whether the step may still keep its locks.
func (s StepRecord) keeps(planned PlannedStep, now time.Time) bool {
	return planned.KeepsDomains && !s.KeptFrom.IsZero() && now.Before(s.KeptFrom.Add(time.Duration(planned.Timeout)))
}

// keepFrom starts the time for which an attempt keeps the locks, unless an earlier attempt did: a step that fails
// again and again must let others run in between.
func (s *StepRecord) keepFrom(planned PlannedStep, now time.Time) {
	if planned.KeepsDomains && !s.keeps(planned, now) {
		s.KeptFrom = now
	}
}

// NamesDomains reports whether any step of the plan takes a lock.
func (p Plan) NamesDomains() bool {
	return slices.ContainsFunc(slices.Concat(p.Steps, p.Undo), func(step PlannedStep) bool { return len(step.Domains) > 0 })
}

// TakingDomains returns a copy of the plan in which each step takes the locks.
func (p Plan) TakingDomains(domains []string) Plan {
	p.Steps, p.Undo = slices.Clone(p.Steps), slices.Clone(p.Undo)
	for _, steps := range [][]PlannedStep{p.Steps, p.Undo} {
		for i := range steps {
			steps[i].Domains = domains
		}
	}
	return p
}
