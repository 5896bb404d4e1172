package ceph_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsrook "github.com/replicatedhq/ekco/actions/rook"
	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// TestEKCOSetsThePoolOfTheMgrAndPutsTheOptionBack, step by step, each of which is proved before
// and after, and run twice.
func TestEKCOSetsThePoolOfTheMgrAndPutsTheOptionBack(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{SeveralCopies: true})
	api := clientOf(t, c, client.Options{Timeout: time.Minute, ConnectTimeout: 30 * time.Second})
	pools, err := api.Pools(t.Context())
	must(t, err)
	if !slices.ContainsFunc(pools, func(p client.Pool) bool { return p.Name == mgrPool }) {
		c.Ceph("osd", "pool", "create", mgrPool, "1")
	}
	must(t, api.SetPoolNumber(t.Context(), mgrPool, client.PoolSize, 3, false))
	must(t, api.SetPoolNumber(t.Context(), mgrPool, client.PoolMinSize, 2, false))
	must(t, api.SetMonOption(t.Context(), sizeOne, "false"))
	definitions := actionsrook.New(actionsrook.Parts{
		Rook: rook.NewCustom(kubesim.NewObjects()), Ceph: api, Nodes: kubesim.New(), Changed: func() {},
	})
	i := slices.IndexFunc(definitions, func(d actions.Definition) bool { return d.Kind == journal.ActionSetCephPools })
	for _, numbers := range [][4]int{{3, 1, 2, 1}, {1, 2, 1, 1}, {2, 3, 1, 2}} {
		setPools(t, definitions[i], api, numbers)
		pools, err := api.Pools(t.Context())
		must(t, err)
		at := slices.IndexFunc(pools, func(p client.Pool) bool { return p.Name == mgrPool })
		if is := pools[at]; is.Size != numbers[1] || is.MinSize != numbers[3] {
			t.Errorf("it is %+v, want %v", is, numbers)
		}
		if option, err := api.MonOption(t.Context(), sizeOne); err != nil || !option.Own || option.Value != "false" {
			t.Errorf("%v: the option is %+v", err, option)
		}
	}
}

// setPools carries out an action: size from and to, min_size from and to.
func setPools(t *testing.T, definition actions.Definition, api *client.Client, numbers [4]int) {
	t.Helper()
	tree, err := api.Tree(t.Context())
	must(t, err)
	record := journal.ActionRecord{Kind: definition.Kind, Subject: journal.RookCeph}
	record.Subject.UID = tree.FSID
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{
		journal.PoolPlace(mgrPool, journal.PoolSize): {From: numbers[0], To: numbers[1]},
	}}
	if numbers[2] != numbers[3] {
		change.Numbers[journal.PoolPlace(mgrPool, journal.PoolMinSize)] = journal.RookNumber{From: numbers[2], To: numbers[3]}
	}
	record.Request.Input = change
	for _, preflight := range definition.Preflights {
		await.Looking(t, time.Second, time.Minute, fmt.Sprintf("%v may begin", numbers), func() (bool, string) {
			verdict := preflight.Check(t.Context(), record) // which waits until all copies are complete
			return verdict.Kind == actions.VerdictPass, verdict.Reason
		})
	}
	plan, err := definition.Plan(t.Context(), record)
	must(t, err)
	record.Plan = plan
	for _, planned := range plan.Steps {
		step, code := actions.StepContext{Action: record, Planned: planned, Log: slog.New(slog.DiscardHandler)}, definition.Steps[planned.Does]
		for range 2 {
			_, err := code.Do(context.WithoutCancel(t.Context()), step)
			must(t, err)
		}
		if proof, err := code.Prove(t.Context(), step); err != nil || !proof.Done {
			t.Errorf("%v: %s: %v: %+v", numbers, planned.ID, err, proof)
		}
	}
}
