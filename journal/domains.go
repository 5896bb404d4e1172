package journal

import (
	"slices"
	"strings"
	"time"
)

// Locks (domains) that steps of several capabilities take.
const (
	// DomainNodes is the lock on the set of existing Nodes.
	DomainNodes = "nodes"
	// DomainControlPlane is the lock on the list of etcd's members and on kubeadm's list of primaries.
	DomainControlPlane = "control-plane"
	// DomainStorage is the lock on the places of the cluster's data, and on the number of copies.
	DomainStorage = "storage"
)

const hostDomainPrefix = "host/"

// DomainHost returns the lock on the files of a host, so that only one task at a time changes them. Each step may take
// it, also if its kind of action does not list it.
func DomainHost(node string) string { return hostDomainPrefix + node }

// HostOf returns the node of a lock from [DomainHost], and false for another lock.
func HostOf(domain string) (node string, is bool) { return strings.CutPrefix(domain, hostDomainPrefix) }

// KeepsLocks reports whether the step may still keep its locks between attempts; see [PlannedStep.KeepsDomains].
func (s StepRecord) KeepsLocks(planned PlannedStep, now time.Time) bool {
	return planned.KeepsDomains && !s.KeptFrom.IsZero() && now.Before(s.KeptFrom.Add(time.Duration(planned.Timeout)))
}

// startKeepingLocks sets KeptFrom. It does nothing while the step still keeps its locks because of an earlier attempt:
// otherwise a step that fails often would keep them forever.
func (s *StepRecord) startKeepingLocks(planned PlannedStep, now time.Time) {
	if planned.KeepsDomains && !s.KeepsLocks(planned, now) {
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
