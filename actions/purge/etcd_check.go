package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/journal"
)

// EtcdQuorumKept is the preflight that computes whether etcd keeps a quorum after the removal. If not, it holds an
// automatic purge, ends a manual purge before its point of no return, and warns a forced one. Members that do not
// answer count as lost. If EKCO cannot ask the members, for example without certificates, the preflight holds every
// purge that is not forced.
const EtcdQuorumKept = "EtcdQuorumKept"

type etcdQuorumKept struct{ dial etcd.Dial }

func (p etcdQuorumKept) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	facts, err := factsOf(record)
	switch {
	case err != nil:
		return actions.Hold(err.Error())
	case facts.Etcd == nil:
		return actions.Pass()
	case facts.Etcd.Problem != "":
		return actions.Warn("EKCO removes no etcd member: " + facts.Etcd.Problem).About("no member")
	case facts.Etcd.Member == nil:
		return actions.Pass()
	}
	projected, err := p.projectMembers(ctx, facts)
	switch {
	case errors.Is(err, etcd.ErrNoMember), errors.Is(err, etcd.ErrOtherMember):
		return actions.Pass()
	case errors.Is(err, etcd.ErrNoQuorum):
		return quorumLostVerdict(record, "no quorum", fmt.Sprintf("etcd has no quorum now, so it cannot agree to remove a member (%v). Bring a member back first.", err))
	case err != nil && record.Request.Force:
		return actions.Warn(fmt.Sprintf("cannot tell whether etcd keeps its quorum: %v", err)).About("unknown")
	case errors.Is(err, etcd.ErrUnavailable) && ctx.Err() == nil:
		return quorumLostVerdict(record, "unanswered", fmt.Sprintf("No member of etcd answers, so EKCO assumes that it has no quorum (%v). Bring a member back first.", err))
	case err != nil:
		return actions.Hold(fmt.Sprintf("cannot tell whether etcd keeps its quorum: %v", err)).About("unknown: " + keyOf(err))
	case projected.Keeps:
		return actions.Pass()
	}
	return quorumLostVerdict(record, "too few", projected.Reason)
}

// quorumLostVerdict returns the verdict if too few voters would remain for a quorum.
func quorumLostVerdict(record journal.ActionRecord, key, reason string) actions.Verdict {
	switch {
	case record.Request.Manual && record.Request.Force:
		return actions.Warn(reason).About(key)
	case record.Request.Manual && !record.PastNoReturn:
		return actions.Abandon(reason + " --force continues anyway.").About(key)
	}
	return actions.Hold(reason).About(key)
}

// projectMembers asks the members that would remain. It asks the node's own member only if needed, because a dead
// member costs a timeout.
func (p etcdQuorumKept) projectMembers(ctx context.Context, facts Facts) (etcd.Projection, error) {
	api, err := p.dial(facts.Etcd.Endpoints)
	if err != nil {
		return etcd.Projection{}, err
	}
	members, err := api.Members(ctx)
	if err != nil {
		return etcd.Projection{}, err
	}
	member, err := etcd.Confirm(members, *facts.Etcd.Member, facts.Node.Name)
	if err != nil {
		return etcd.Projection{}, err
	}
	others := slices.DeleteFunc(slices.Clone(members), func(m etcd.Member) bool { return m.ID == member.ID })
	health := api.Health(ctx, others)
	projected := etcd.ProjectRemoval(members, health, member.ID)
	if projected.Keeps {
		return projected, nil
	}
	health = append(health, api.Health(ctx, []etcd.Member{member})...)
	return etcd.ProjectRemoval(members, health, member.ID), nil
}
