package ceph_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	actionsrook "github.com/replicatedhq/ekco/actions/rook"
	"github.com/replicatedhq/ekco/fsm"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// TestEKCOSetsThePoolOfTheMgrAndPutsTheOptionBack as a cluster grows from one host, where Ceph
// serves a pool of three copies to nobody, to three. Each action runs twice.
func TestEKCOSetsThePoolOfTheMgrAndPutsTheOptionBack(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1}, Spare: map[string]int{"node2": 1, "node3": 1}, SeveralCopies: true})
	api := clientOf(t, c, client.Options{})
	pools, err := api.Pools(t.Context())
	must(t, err)
	if !slices.ContainsFunc(pools, func(p client.Pool) bool { return p.Name == mgrPool }) {
		c.Ceph("osd", "pool", "create", mgrPool, "1")
	}
	must(t, api.SetPoolNumber(t.Context(), mgrPool, client.PoolSize, 3, false))
	must(t, api.SetPoolNumber(t.Context(), mgrPool, client.PoolMinSize, 2, false))
	must(t, api.SetMonOption(t.Context(), sizeOne, "false"))
	if _, err := c.ReadWithin(mgrPool, "object", 2*time.Second); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
		t.Errorf("of a pool that is not served a read came to %v", err)
	}
	for _, change := range []struct {
		join    string
		numbers [4]int // size from and to, min_size from and to
	}{{"", [4]int{3, 1, 2, 1}}, {"node2", [4]int{1, 2, 1, 1}}, {"node3", [4]int{2, 3, 1, 2}}} {
		if change.join != "" {
			_, err := c.AddHost(change.join)
			must(t, err)
		}
		for range 2 {
			setPools(t, api, change.numbers)
		}
		pools, err := api.Pools(t.Context())
		must(t, err)
		at := slices.IndexFunc(pools, func(p client.Pool) bool { return p.Name == mgrPool })
		if is := pools[at]; is.Size != change.numbers[1] || is.MinSize != change.numbers[3] {
			t.Errorf("it is %+v, want %v", is, change.numbers)
		}
		if option, err := api.MonOption(t.Context(), sizeOne); err != nil || !option.Own || option.Value != "false" {
			t.Errorf("%v: the option is %+v", err, option)
		}
		if change.join == "" {
			c.Write(mgrPool, "object", "content")
		}
		if got, err := c.TryRead(mgrPool, "object"); err != nil || got != "content" {
			t.Errorf("with size %d: %v: read is %q", change.numbers[1], err, got)
		}
	}
}

// setPools has an action run to its end.
func setPools(t *testing.T, api *client.Client, numbers [4]int) {
	t.Helper()
	tree, err := api.Tree(t.Context())
	must(t, err)
	of := journal.RookCeph
	of.UID = tree.FSID
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{
		journal.PoolPlace(mgrPool, journal.PoolSize): {From: numbers[0], To: numbers[1]},
	}}
	if numbers[1] > numbers[0] {
		change.Hosts = numbers[1]
	}
	if numbers[2] != numbers[3] {
		change.Numbers[journal.PoolPlace(mgrPool, journal.PoolMinSize)] = journal.RookNumber{From: numbers[2], To: numbers[3]}
	}
	w := actionstest.NewWorld(t)
	w.Terms, err = fsm.TermsByKind(fsmrook.Capability())
	must(t, err)
	w.Request(of, journal.ActionRequested{Kind: journal.ActionSetCephPools, Input: change})
	ctx, cancel := context.WithTimeout(t.Context(), 2*await.HangTimeout)
	defer cancel()
	cfg := w.Config(actionsrook.New(actionsrook.Dependencies{
		Rook: rook.NewCustom(kubesim.NewObjects()), Ceph: api, Nodes: kubesim.New(), IsLowSpaceCheck: fsmrook.IsLowSpaceCheck, Changed: func() {},
		Removed: func(context.Context) bool { return false },
	}))
	cfg.Retry.HoldInitial, cfg.Retry.HoldMax = time.Second, time.Second
	err = actions.NewRunner(cfg).Run(ctx, w.Record(), nil)
	if err != nil || w.LastLine() != "ended done" {
		t.Fatalf("%v: %v: %q", numbers, err, w.Story())
	}
}
