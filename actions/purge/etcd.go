package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

const (
	doesRemoveMember    = "remove-etcd-member"
	removeMemberTimeout = 90 * time.Second
)

// removeMember removes the captured etcd member by its id.
type removeMember primaryPart

// Prove implements [actions.Step]. It reports done if the member now belongs to another node.
func (s removeMember) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, _, err := s.findMember(ctx, step)
	switch {
	case errors.Is(err, etcd.ErrNoMember):
		return actions.Proof{Done: true}, nil
	case errors.Is(err, etcd.ErrOtherMember):
		return actions.Proof{Done: true, Outputs: leftOutput(err.Error())}, nil
	case err != nil:
		return actions.Proof{}, err
	}
	return actions.Proof{Missing: "etcd still lists the member"}, nil
}

func (s removeMember) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	api, member, err := s.findMember(ctx, step)
	switch {
	case errors.Is(err, etcd.ErrNoMember), errors.Is(err, etcd.ErrOtherMember):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := api.RemoveMember(ctx, member.ID); err != nil && !errors.Is(err, etcd.ErrNoMember) {
		return nil, err
	}
	return nil, nil
}

// findMember returns the present state of the captured member.
func (s removeMember) findMember(ctx context.Context, step actions.StepContext) (etcd.API, etcd.Member, error) {
	facts, err := factsOf(step.Action)
	if err != nil {
		return nil, etcd.Member{}, err
	}
	api, err := s.plane.Etcd(facts.Etcd.Endpoints)
	if err != nil {
		return nil, etcd.Member{}, fmt.Errorf("connect to etcd: %w", err)
	}
	members, err := api.Members(ctx)
	if err != nil {
		return nil, etcd.Member{}, err
	}
	member, err := etcd.Confirm(members, *facts.Etcd.Member, facts.Node.Name)
	if err != nil {
		return nil, etcd.Member{}, err
	}
	return api, member, s.checkOwner(ctx, api, facts, members, member)
}

// checkOwner returns ErrOtherMember if the member may belong to a Node that joined later. This is so if the member had
// not started when it was captured, and now another member has the lost node's name or a Node has the member's address.
// It is also so if a Node has the lost node's name, no other member has that name, and the member answers or was never
// known to be the lost node's.
//
// kubeadm adds a member after the Node, so EKCO reads the Nodes after the members.
func (s removeMember) checkOwner(ctx context.Context, api etcd.API, facts Facts, members []etcd.Member, member etcd.Member) error {
	node := facts.Node
	another := slices.ContainsFunc(members, func(m etcd.Member) bool { return m.ID != member.ID && m.Name == node.Name })
	switch {
	case facts.Etcd.Member.Name == "" && another:
		return fmt.Errorf("%w: another member has the name %s, and %s may be that of a joining node", etcd.ErrOtherMember, node.Name, member)
	case facts.Etcd.Member.Name == "":
		return s.checkUnstarted(ctx, node, member)
	case another:
		return nil
	}
	joined, err := node.replacement(ctx, s.api)
	switch {
	case err != nil || joined == "":
		return err
	case !journal.IsTraced(node.UID) && !memberAnswers(api.Health(ctx, []etcd.Member{member})):
		return nil
	}
	return fmt.Errorf("%w: a node %s has joined (uid %s), and %s may be its own", etcd.ErrOtherMember, node.Name, joined, member)
}

func (s removeMember) checkUnstarted(ctx context.Context, lost NodeIdentity, member etcd.Member) error {
	others, err := primaryPart(s).others(ctx, lost)
	if err != nil {
		return err
	}
	for _, other := range others {
		if member.HasPeerURL(kubeadm.EtcdPeerURLs(internalIPs([]kube.Node{other}))) {
			return fmt.Errorf("%w: node %s (uid %s) has its address %s now, and %s may be its own",
				etcd.ErrOtherMember, other.Name, other.UID, other.Facts.InternalIP, member)
		}
	}
	return nil
}

// memberAnswers reports whether a member answers at one of its addresses.
func memberAnswers(health []etcd.EndpointHealth) bool {
	return slices.ContainsFunc(health, func(e etcd.EndpointHealth) bool { return e.Healthy })
}

// leftOutput returns the output of a step that did not remove something, with the reason.
func leftOutput(why string) json.RawMessage {
	outputs, err := json.Marshal(map[string]string{"left": why})
	if err != nil {
		return nil
	}
	return outputs
}
