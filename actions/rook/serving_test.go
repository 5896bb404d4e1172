package rook

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// TestCopiesAreRaisedOnlyWhileThePoolIsServedMeanwhile: with three copies Ceph serves what has two.
func TestCopiesAreRaisedOnlyWhileThePoolIsServedMeanwhile(t *testing.T) {
	pool := func(size int) func(*estate) {
		return func(e *estate) { e.ceph.AddPool("replicapool", size, 1) }
	}
	lose := func(e *estate) { e.ceph.LoseHost("b"); e.ceph.LoseHost("c") }
	for name, test := range map[string]struct {
		world  []func(*estate)
		change journal.RookChange
		kind   actions.VerdictKind
		key    string
	}{
		"one to two":            {[]func(*estate){pool(1)}, number(sizeAt, 1, 2), actions.VerdictPass, ""},
		"one to two, one left":  {[]func(*estate){pool(1), lose}, number(sizeAt, 1, 2), actions.VerdictPass, ""},
		"two to three":          {[]func(*estate){pool(2)}, number(sizeAt, 2, 3), actions.VerdictPass, ""},
		"two to three, one yet": {[]func(*estate){pool(2), lose}, number(sizeAt, 2, 3), actions.VerdictHold, "incomplete"},
		"not carried out":       {[]func(*estate){pool(1)}, number(sizeAt, 2, 3), actions.VerdictHold, "size"},
		"fewer":                 {[]func(*estate){pool(3), lose}, number(sizeAt, 3, 2), actions.VerdictPass, ""},
		"another name":          {[]func(*estate){func(e *estate) { e.ceph.AddPool("mine", 2, 1) }, lose}, number(sizeAt, 2, 3), actions.VerdictHold, "incomplete"},
		"another pool's copies": {[]func(*estate){pool(2), func(e *estate) { e.ceph.AddPool("mine", 4, 1) }}, number(sizeAt, 2, 3), actions.VerdictPass, ""},
		"unread":                {[]func(*estate){pool(2), func(e *estate) { e.ceph.LoseMgr(true) }}, number(sizeAt, 2, 3), actions.VerdictHold, "copies unread"},
		"by command":            {[]func(*estate){pool(2), lose}, number(journal.PoolPlace("replicapool", journal.PoolSize), 2, 3), actions.VerdictHold, "incomplete"},
		"served with more":      {[]func(*estate){pool(3), lose}, number(journal.PoolPlace("replicapool", journal.PoolMinSize), 1, 2), actions.VerdictHold, "incomplete"},
		"served with fewer":     {[]func(*estate){pool(3), lose}, number(journal.PoolPlace("replicapool", journal.PoolMinSize), 2, 1), actions.VerdictPass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := installed(blockPool, size1)
			for _, change := range test.world {
				change(e)
			}
			e.checks(t, CopiesServe, test.change, test.kind, test.key)
		})
	}
}

func TestWhatIsServedWithOneCopyNeedsNoneToBeComplete(t *testing.T) {
	for _, test := range []struct {
		from, to int
		want     bool
	}{{1, 2, false}, {2, 3, true}, {3, 4, true}, {3, 2, false}} {
		if got := slices.Contains(needs(blockPool, number(sizeAt, test.from, test.to)), CopiesServe); got != test.want {
			t.Errorf("%d to %d: asked is %t", test.from, test.to, got)
		}
		plan, err := Parts{Ceph: mgrPool(test.from, ceph.Option{}).ceph}.planPools(t.Context(), journal.ActionRecord{Request: journal.ActionRequested{Input: numbers(test.from, test.to)}})
		if err != nil || slices.Contains(plan.Steps[0].Preflights, CopiesServe) != test.want {
			t.Errorf("%d to %d by command: %v, %+v", test.from, test.to, err, plan.Steps)
		}
	}
}
