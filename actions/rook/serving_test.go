package rook

import (
	"context"
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
		if got := slices.Contains(preflightsFor(blockPool, number(sizeAt, test.from, test.to)), CopiesServe); got != test.want {
			t.Errorf("%d to %d: asked is %t", test.from, test.to, got)
		}
		plan, err := Dependencies{Ceph: mgrPool(test.from, ceph.Option{}).ceph}.planPools(t.Context(), journal.ActionRecord{}, numbers(test.from, test.to))
		if err != nil || slices.Contains(plan.Steps[0].Preflights, CopiesServe) != test.want {
			t.Errorf("%d to %d by command: %v, %+v", test.from, test.to, err, plan.Steps)
		}
	}
}

// TestAPoolWithANameOfItsOwnIsJudgedByItself, before it is raised and before it is lowered.
func TestAPoolWithANameOfItsOwnIsJudgedByItself(t *testing.T) {
	const at = "/spec/dataPools/0/replicated/size"
	fs := journal.RookPools(journal.KindCephFilesystem, "fs")
	names := journal.RookNames{at: "fs-fast"}
	e := installed(fs, `{"metadata":{"name":"fs"},"spec":{"dataPools":[{"name":"fast","replicated":{"size":3}}]}}`)
	e.ceph.AddPool("fs-data0", 2, 1)
	e.ceph.AddPool("fs-fast", 1, 1)
	raise := number(at, 2, 3)
	e.checks(t, CopiesServe, raise, actions.VerdictPass, "")
	raise.Names = names
	e.checks(t, CopiesServe, raise, actions.VerdictHold, "size")
	e.ceph.SetPool("fs-fast", 4)
	e.checks(t, RoomForCopies, raise, actions.VerdictAbandon, "lowered")

	lower := journal.RookChange{Numbers: map[string]journal.RookNumber{at: {From: 3, To: 2}}, Gone: []string{"x"}, Names: names}
	if got := e.says(t, PoolOnHosts, lower); got.Key != "size" {
		t.Errorf("with a copy too many it says %+v", got)
	}
	e.ceph.SetPool("fs-fast", 3)
	if missing, err := (Dependencies{Ceph: e.ceph}).poolNotLowered(t.Context(), fs, lower); err != nil || missing == "" {
		t.Errorf("%v: what Rook has not carried out is %q", err, missing)
	}
}

// TestARebalanceKeepsNoCopyWaiting: a host that joins has Ceph move what two others have.
func TestARebalanceKeepsNoCopyWaiting(t *testing.T) {
	e := installed(blockPool, size1)
	e.ceph.AddPool("replicapool", 2, 1)
	for state, kind := range map[string]actions.VerdictKind{"active+remapped+backfilling": actions.VerdictPass, "active+recovering+degraded": actions.VerdictHold} {
		record := journal.ActionRecord{Subject: e.subject}
		if got := (copiesServe{busy{e.ceph, state}}).check(t.Context(), record, number(sizeAt, 2, 3)); got.Kind != kind {
			t.Errorf("while all are %s it says %+v", state, got)
		}
		lowers := Dependencies{Ceph: busy{e.ceph, state}}.loweringChecks()[CopiesComplete]
		record.Request.Input = number(sizeAt, 2, 1)
		if got := lowers.Check(t.Context(), record); got.Kind != actions.VerdictHold {
			t.Errorf("while all are %s copies are taken away: %+v", state, got)
		}
	}
}

// busy is a Ceph whose placement groups are all in one state.
type busy struct {
	Ceph
	state string
}

func (b busy) PGs(ctx context.Context) ([]ceph.PG, error) {
	pgs, err := b.Ceph.PGs(ctx)
	for i := range pgs {
		pgs[i].State = b.state
	}
	return pgs, err
}

func TestHowManyCopiesANumberNeedsFirst(t *testing.T) {
	size, minSize := journal.PoolPlace("p", journal.PoolSize), journal.PoolPlace("p", journal.PoolMinSize)
	for _, test := range []struct {
		place          string
		from, to, want int
	}{
		{sizeAt, 1, 2, 1},
		{sizeAt, 2, 3, 2},
		{sizeAt, 3, 4, 2},
		{sizeAt, 4, 5, 3},
		{sizeAt, 5, 4, 1},
		{size, 2, 3, 2},
		{size, 3, 4, 2},
		{size, 5, 4, 1},
		{minSize, 1, 2, 2},
		{minSize, 2, 3, 3},
		{minSize, 3, 2, 1},
		{journal.PoolPlace("p", journal.PoolPGNumMin), 1, 8, 1},
	} {
		if got := neededCopies(test.place, journal.RookNumber{From: test.from, To: test.to}); got != test.want {
			t.Errorf("%s from %d to %d needs %d, want %d", test.place, test.from, test.to, got, test.want)
		}
	}
}
