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

// Keeps reports whether the step may still keep its locks.
func (s StepRecord) Keeps(planned PlannedStep, now time.Time) bool {
	return planned.KeepsDomains && !s.KeptFrom.IsZero() && now.Before(s.KeptFrom.Add(time.Duration(planned.Timeout)))
}

// keepFrom starts the time for which an attempt keeps the locks, unless an earlier attempt did: a step that fails
// again and again must let others run in between.
func (s *StepRecord) keepFrom(planned PlannedStep, now time.Time) {
	if planned.KeepsDomains && !s.Keeps(planned, now) {
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
