package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// carriedTimeout limits one check of whether Ceph's pools have the lower number of copies.
const carriedTimeout = 30 * time.Second

// lowerDefinition returns the action that lowers one number. The action ends only when Ceph has the new number, and no
// other number may be lowered before that.
func (p Dependencies) lowerDefinition() actions.Definition {
	return actions.Definition{
		Kind: journal.ActionLowerCopies, Noun: "lowering of copies", Expendable: true,
		Plan: actions.PlanOf(planLower),
		Steps: map[string]actions.StepDef{
			journal.StepChangeRook:  {Step: p.step()},
			journal.StepRookCarried: {Step: actions.WithFacts(awaitCarried{p}), Interruptible: true}, // a cancel need not wait for Rook
			journal.StepLowerPools:  {Step: actions.WithFacts(lowerPools{p})},
		},
		Preflights: p.lowerPreflights(),
	}
}

func isLowering(change journal.RookChange) bool {
	for _, number := range change.Numbers {
		if number.To < number.From {
			return true
		}
	}
	return false
}

// planLower plans the steps from the request alone. It reads nothing.
func planLower(_ context.Context, record journal.ActionRecord, change journal.RookChange) (journal.Plan, error) {
	if len(change.Numbers) != 1 || !isLowering(change) || len(change.Gone) == 0 {
		return journal.Plan{}, fmt.Errorf("plan to lower the copies of %s %s: want one number that is lowered and at least one lost host, got %s and %d hosts",
			record.Subject.Kind, record.Subject.Name, change.To(), len(change.Gone))
	}
	safe := append([]string{RookUnchanged}, safelyLowered()...)
	ask := journal.PlannedStep{
		ID: journal.StepChangeRook, Does: journal.StepChangeRook, Preflights: safe,
		Timeout: journal.Duration(changeTimeout), Domains: []string{journal.DomainStorage},
	}
	then := journal.PlannedStep{
		ID: journal.StepRookCarried, Does: journal.StepRookCarried, Preflights: []string{RookUnchanged, RookCarried},
		Timeout: journal.Duration(carriedTimeout), Domains: actions.NoDomains,
	}
	if change.ByCommand {
		then = journal.PlannedStep{
			ID: journal.StepLowerPools, Does: journal.StepLowerPools, Preflights: append(slices.Clone(safe), RookCarried),
			Timeout: journal.Duration(cephTimeout), Domains: []string{journal.DomainStorage},
		}
	}
	then.After = []string{ask.ID}
	return journal.Plan{Steps: []journal.PlannedStep{ask, then}}, nil
}

// awaitCarried changes nothing: its preflight waits for Rook.
type awaitCarried struct{ parts Dependencies }

func (awaitCarried) Do(context.Context, actions.StepContext, journal.RookChange) (json.RawMessage, error) {
	return nil, nil
}

func (s awaitCarried) Prove(ctx context.Context, step actions.StepContext, change journal.RookChange) (actions.Proof, error) {
	missing, err := s.parts.poolNotLowered(ctx, step.Action.Subject, change)
	return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
}

// lowerPools sets the size of the pools in Ceph.
type lowerPools struct{ parts Dependencies }

func (s lowerPools) Prove(ctx context.Context, step actions.StepContext, change journal.RookChange) (actions.Proof, error) {
	return awaitCarried(s).Prove(ctx, step, change)
}

func (s lowerPools) Do(ctx context.Context, step actions.StepContext, _ journal.RookChange) (json.RawMessage, error) {
	asked, err := loweringOf(step.Action)
	if err != nil {
		return nil, err
	}
	pools, err := s.parts.Ceph.Pools(ctx)
	if err != nil {
		return nil, err
	}
	defer s.parts.Changed()
	for _, pool := range poolsOf(pools, step.Action.Subject, asked.Names, asked.place) {
		if pool.Size <= asked.to {
			continue
		}
		if err := s.parts.Ceph.SetPoolNumber(ctx, pool.Name, journal.PoolSize, asked.to, false); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// poolNotLowered names a pool that still has more copies than requested, or returns "".
func (p Dependencies) poolNotLowered(ctx context.Context, of journal.Subject, change journal.RookChange) (string, error) {
	pools, err := p.Ceph.Pools(ctx)
	if err != nil {
		return "", err
	}
	for place, number := range change.Numbers {
		for _, pool := range poolsOf(pools, of, change.Names, place) {
			if pool.Size > number.To {
				return fmt.Sprintf("pool %s still keeps %d copies in Ceph, want %d", pool.Name, pool.Size, number.To), nil
			}
		}
	}
	return "", nil
}

// poolsOf returns the pools to which the number at the place applies.
func poolsOf(pools []ceph.Pool, of journal.Subject, names journal.RookNames, place string) []ceph.Pool {
	return slices.DeleteFunc(slices.Clone(pools), func(pool ceph.Pool) bool { return !names.IsPoolFor(of, place, pool.Name) })
}

// lowering is a request to lower one number.
type lowering struct {
	journal.RookChange
	place    string
	from, to int
}

// pool returns the Ceph pool that is lowered by command, or "" if a custom resource has the number.
func (l lowering) pool() string {
	pool, _, _ := journal.PoolNumber(l.place)
	return pool
}

// loweringOf reads the request.
func loweringOf(record journal.ActionRecord) (lowering, error) {
	change, err := journal.InputOf[journal.RookChange](record.Request)
	if err != nil {
		return lowering{}, err
	}
	places := slices.DeleteFunc(slices.Sorted(maps.Keys(change.Numbers)), func(place string) bool {
		_, setting, is := journal.PoolNumber(place)
		return is && setting != journal.PoolSize
	})
	if len(places) != 1 {
		return lowering{}, fmt.Errorf("read what to lower of %s: want one number, got %d (%s)", record.Subject.Name, len(places), strings.Join(places, ", "))
	}
	number := change.Numbers[places[0]]
	return lowering{RookChange: change, place: places[0], from: number.From, to: number.To}, nil
}
