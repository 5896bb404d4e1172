package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
)

const (
	doesRemoveMember    = "remove-etcd-member"
	removeMemberTimeout = 90 * time.Second
)

// removeMember removes the captured etcd member by its id.
type removeMember primaryPart

// Atomic implements [AtomicStep]: a member that is listed was not removed.
func (removeMember) Atomic() bool { return true }

// Prove implements [Step]. A member of the id that turned out to be another
// node's is not the one that was meant.
func (s removeMember) Prove(ctx context.Context, step StepContext) (Proof, error) {
	_, _, err := s.find(ctx, step)
	switch {
	case errors.Is(err, etcd.ErrNoMember):
		return Proof{Done: true}, nil
	case errors.Is(err, etcd.ErrOtherMember):
		return Proof{Done: true, Outputs: left(err.Error())}, nil
	case err != nil:
		return Proof{}, err
	}
	return Proof{Missing: "etcd still lists the member"}, nil
}

// Do implements [Step].
func (s removeMember) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	api, member, err := s.find(ctx, step)
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

// find returns the captured member as it is now.
func (s removeMember) find(ctx context.Context, step StepContext) (etcd.API, etcd.Member, error) {
	facts, err := purgeFacts(step.Action)
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
	return api, member, err
}

// left is the output of a step that leaves something alone, and says why.
func left(why string) json.RawMessage {
	outputs, err := json.Marshal(map[string]string{"left": why})
	if err != nil {
		return nil
	}
	return outputs
}
