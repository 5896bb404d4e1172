package etcd

import (
	"fmt"

	"github.com/replicatedhq/ekco/journal/words"
)

// Projection is the cluster after the removal of a member.
type Projection struct {
	// Voters, HealthyVoters, Quorum and Learners are the numbers after the removal.
	Voters        int `json:"voters"`
	HealthyVoters int `json:"healthy_voters"`
	Quorum        int `json:"quorum"`
	Learners      int `json:"learners"`
	// Keeps is set if the remaining members have a quorum.
	Keeps bool `json:"keeps"`
	// Reason is a sentence for administrators. It is also set if Keeps is set.
	Reason string `json:"reason"`
}

// ProjectRemoval returns what would remain of a cluster without a member. health
// is [API].Health of all members, including the removed one; a voter is healthy if
// one of its endpoints is.
//
// A cluster of n voters can agree on anything, also on removals, only while a
// quorum of n/2+1 of them is healthy:
//
//	voters  quorum  may be lost  after removing one that is dead
//	------  ------  -----------  -------------------------------------------------
//	     1       1            0  nothing remains
//	     2       2            0  etcd has stopped; restore it first
//	     3       2            1  2 voters: both are needed, none more may be lost
//	     4       3            1  3 voters: one more may be lost
//	     5       3            2  4 voters: one more may be lost
//	     6       4            2  5 voters: two more may be lost
//	     7       4            3  6 voters: two more may be lost
//
// The removal of a dead voter never makes quorum harder to reach. The removal of a healthy voter can: if one of three
// voters is dead, one healthy voter of two remains, and etcd stops for good. So the projection refuses the removal if
// fewer healthy voters would remain than their quorum, or if there is no quorum now. Learners do not vote, so their
// removal never costs quorum. A voter that never started counts as dead: it is part of n.
//
// etcd itself refuses some of these removals, but in a purge only after steps that cannot be undone.
func ProjectRemoval(members []Member, health []EndpointHealth, remove ID) Projection {
	healthy := make(map[ID]bool)
	for _, h := range health {
		healthy[h.Member] = healthy[h.Member] || h.Healthy
	}
	var now, after Projection
	var target *Member
	for i, m := range members {
		now.count(m, healthy[m.ID])
		if m.ID == remove {
			target = &members[i]
			continue
		}
		after.count(m, healthy[m.ID])
	}
	now.Quorum, after.Quorum = quorum(now.Voters), quorum(after.Voters)
	after.judge(now, target)
	return after
}

func (p *Projection) count(m Member, healthy bool) {
	switch {
	case m.Learner:
		p.Learners++
	case healthy:
		p.Voters++
		p.HealthyVoters++
	default:
		p.Voters++
	}
}

// quorum returns the number of voters that must agree. Without voters it returns 1, so that there is never a quorum.
func quorum(voters int) int { return voters/2 + 1 }

func (p *Projection) judge(now Projection, target *Member) {
	remain := fmt.Sprintf("%s would remain, of which %d answer and %d are needed", words.Count(p.Voters, "voter"), p.HealthyVoters, p.Quorum)
	switch {
	case target == nil:
		p.Keeps = true
		p.Reason = "etcd has no such member, so nothing would change."
	case p.Voters == 0 && !target.Learner:
		p.Reason = fmt.Sprintf("Member %s is the last voter of etcd; without it there is no cluster.", target.label())
	case now.HealthyVoters < now.Quorum:
		p.Reason = fmt.Sprintf("etcd has no quorum now: %d of %s answer and %d are needed, so it cannot agree to remove member %s. Bring a member back first.",
			now.HealthyVoters, words.Count(now.Voters, "voter"), now.Quorum, target.label())
	case target.Learner:
		p.Keeps = true
		p.Reason = fmt.Sprintf("Member %s is a learner, which does not vote; quorum stays as it is.", target.label())
	case p.HealthyVoters < p.Quorum:
		p.Reason = fmt.Sprintf("Without member %s, %s: etcd would stop for good. Bring another member back or add one first.", target.label(), remain)
	default:
		p.Keeps = true
		p.Reason = fmt.Sprintf("Without member %s, %s%s.", target.label(), remain, p.spare())
	}
}

// spare returns a text with the number of voters that may still fail.
func (p *Projection) spare() string {
	if spare := p.HealthyVoters - p.Quorum; spare > 0 {
		return fmt.Sprintf("; %d more may fail", spare)
	}
	return "; none more may fail until a primary joins"
}

func (m Member) label() string {
	if m.Name == "" {
		return m.ID.String()
	}
	return fmt.Sprintf("%s (id %s)", m.Name, m.ID)
}
