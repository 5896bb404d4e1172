package rook

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// CephPoolsUnchanged requires that it is the same Ceph cluster, and that no other client has set the numbers of the
// pool.
const CephPoolsUnchanged = "CephPoolsUnchanged"

// singleCopies is the monitors' option that allows pools with a single copy. Ceph has it since version 16.
const (
	singleCopies      = "mon_allow_pool_size_one"
	singleCopiesSince = 16
)

// cephTimeout is longer than the timeout of a ceph command.
const cephTimeout = 30 * time.Second

// poolsPlan is the facts of [journal.ActionSetCephPools].
type poolsPlan struct {
	journal.RookChange
	// Sure is true if Ceph requires a confirmation for a single copy.
	Sure bool `json:"sure,omitempty"`
	// Option is the former value of the option; nil if the option need not be changed.
	Option *ceph.Option `json:"option,omitempty"`
}

// stepAllowOnce is the name of [journal.StepNoteOption] in old plans. In these, the step set the option for the whole
// action. Now each step that sets a number sets the option itself. The undo step is the same.
const stepAllowOnce = "allow-single-copy"

// setPoolsDefinition returns the action that sets numbers of one Ceph pool by command, one after the other.
func (p Dependencies) setPoolsDefinition() actions.Definition {
	return actions.Definition{
		Kind: journal.ActionSetCephPools, Noun: "change of the pool",
		// Only this record has the former value of the option, so the mirror must not leave it out first.
		Expendable: false,
		Plan:       actions.PlanOf(p.planPools),
		Steps: map[string]actions.StepDef{
			journal.StepSetPoolNumber: {Step: setNumber{p}, MustFinish: setNumber{p}.mustFinish, CleanUp: setNumber{p}.cleanUp},
			journal.StepNoteOption:    {Step: recordOption{}, MustFinish: recordOption{}.mustFinish},
			stepAllowOnce:             {Step: recordOption{}, MustFinish: recordOption{}.mustFinish},
			journal.StepPutOptionBack: {Step: undoOption{p}},
		},
		Preflights: p.poolPreflights(),
	}
}

// poolPreflights returns the preflights for numbers of pools. A lowering has the usual checks, except that hosts need
// not be gone: Ceph itself creates the mgr's pool, perhaps with more copies than there are hosts.
func (p Dependencies) poolPreflights() map[string]actions.Preflight {
	checks := map[string]actions.Preflight{
		CephPoolsUnchanged: actions.CheckOf(poolsUnchanged{p}.check), StorageHostsThere: actions.CheckOf(hostsThere{p.Ceph}.check),
		RoomForCopies: actions.CheckOf(room{p.Ceph, p.IsLowSpaceCheck}.check), CopiesServe: actions.CheckOf(copiesServe{p.Ceph}.check),
	}
	of := p.loweringChecks()
	for _, name := range safelyLowered() {
		checks[name] = of[name]
	}
	return checks
}

// planPools sets the number of copies first, because Ceph then also sets min_size.
func (p Dependencies) planPools(ctx context.Context, _ journal.ActionRecord, change journal.RookChange) (journal.Plan, error) {
	captured := poolsPlan{RookChange: change}
	if err := p.captureSingleCopyOption(ctx, &captured); err != nil {
		return journal.Plan{}, err
	}
	facts, err := json.Marshal(captured)
	if err != nil {
		return journal.Plan{}, err
	}
	plan := journal.Plan{Facts: facts}
	for _, place := range orderedPlaces(change) {
		plan.Steps = append(plan.Steps, poolStep(place, journal.StepSetPoolNumber, change))
	}
	if len(plan.Steps) == 0 {
		return journal.Plan{}, errors.New("plan to set a pool of Ceph: the request has no change")
	}
	if captured.Option != nil {
		plan = withOptionRecord(plan, change)
	}
	for i := 1; i < len(plan.Steps); i++ {
		plan.Steps[i].After = []string{plan.Steps[i-1].ID}
	}
	return plan, nil
}

func poolStep(id, does string, change journal.RookChange) journal.PlannedStep {
	step := journal.PlannedStep{
		ID: id, Does: does, Preflights: []string{CephPoolsUnchanged},
		Timeout: journal.Duration(cephTimeout), Domains: []string{journal.DomainStorage},
	}
	if change.Hosts > 0 {
		step.Preflights = append(step.Preflights, StorageHostsThere)
	}
	if _, setting, is := journal.PoolNumber(id); is && setting == journal.PoolSize {
		switch number := change.Numbers[id]; {
		case number.To > number.From:
			step.Preflights = append(step.Preflights, RoomForCopies)
		case number.To < number.From:
			step.Preflights = append(step.Preflights, safelyLowered()...)
		}
	}
	if neededCopies(id, change.Numbers[id]) > 1 {
		step.Preflights = append(step.Preflights, CopiesServe)
	}
	return step
}

// orderedPlaces returns the places of the numbers, in the order of the steps.
func orderedPlaces(change journal.RookChange) []string {
	order := []string{journal.PoolSize, journal.PoolMinSize, journal.PoolPGNumMin}
	return slices.SortedFunc(maps.Keys(change.Numbers), func(a, b string) int {
		_, of, _ := journal.PoolNumber(a)
		_, other, _ := journal.PoolNumber(b)
		return slices.Index(order, of) - slices.Index(order, other)
	})
}

// captureSingleCopyOption captures the option that a change to a single copy needs. Before Ceph 16 there is no option.
// Rook often sets the option itself.
func (p Dependencies) captureSingleCopyOption(ctx context.Context, captured *poolsPlan) error {
	if !isSingleCopy(captured.RookChange) {
		return nil
	}
	version, err := p.Ceph.Version(ctx)
	if err != nil {
		return err
	}
	if captured.Sure = version.Major >= singleCopiesSince; !captured.Sure {
		return nil
	}
	option, err := p.Ceph.MonOption(ctx, singleCopies)
	if err == nil && !option.On() {
		captured.Option = &option
	}
	return err
}

func isSingleCopy(change journal.RookChange) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting == journal.PoolSize && number.To == 1 {
			return true
		}
	}
	return false
}

func livePools(ctx context.Context, of Ceph) (journal.RookFacts, error) {
	pools, err := of.Pools(ctx)
	if err != nil {
		return journal.RookFacts{}, err
	}
	said := &journal.CephFacts{}
	for _, pool := range pools {
		said.Pools = append(said.Pools, pool.Facts())
	}
	return journal.RookFacts{Ceph: said}, nil
}

type poolsUnchanged struct{ parts Dependencies }

// check takes into account that Ceph sets min_size together with size. So after EKCO has set a number, a changed
// min_size does not prove that another client set it.
func (p poolsUnchanged) check(ctx context.Context, record journal.ActionRecord, change journal.RookChange) actions.Verdict {
	tree, err := p.parts.Ceph.Tree(ctx)
	switch {
	case err != nil && p.parts.Removed(ctx):
		return actions.Abandon("Rook was removed, and Ceph with it").About("removed")
	case err != nil:
		return actions.Hold("cannot tell whether it is the same Ceph: " + err.Error()).About("unread")
	}
	if tree.FSID != record.Subject.UID {
		return actions.Abandon("Ceph was replaced: its fsid is " + tree.FSID + " now").About("replaced")
	}
	live, err := livePools(ctx, p.parts.Ceph)
	if err != nil {
		return actions.Hold("cannot read the pools: " + err.Error()).About("unread")
	}
	if mayHaveBegun(record) {
		change = withoutMinSize(change)
	}
	if moved := change.Moved(live); moved != "" {
		return actions.Abandon("another client changed it: " + moved).About("moved")
	}
	return actions.Pass()
}

// mayHaveBegun reports whether the action may have set a number.
func mayHaveBegun(record journal.ActionRecord) bool {
	for id, step := range record.Steps {
		if _, _, number := journal.PoolNumber(id); number && !step.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// withoutMinSize returns the change without the min_size of pools, which Ceph sets together with the size.
func withoutMinSize(change journal.RookChange) journal.RookChange {
	change.Numbers = maps.Clone(change.Numbers)
	maps.DeleteFunc(change.Numbers, func(place string, _ journal.RookNumber) bool {
		_, setting, _ := journal.PoolNumber(place)
		return setting == journal.PoolMinSize
	})
	return change
}
