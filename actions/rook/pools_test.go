package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// mgrPool is Ceph with the mgr's pool in that many copies, and that option.
func mgrPool(size int, option ceph.Option) *estate {
	e := installed(blockPool, size1)
	e.subject = journal.RookCeph
	e.subject.UID = cephsim.FSID
	e.ceph.AddPool(journal.OldMgrPool, size, size-size/2)
	e.ceph.PutOption(cephsim.SizeOne, option)
	return e
}

// onHosts leaves so many of the hosts, as the purge of the others does.
func (e *estate) onHosts(hosts int) *estate {
	for i, host := range []string{"a", "b", "c"}[hosts:] {
		e.ceph.LoseHost(host)
		for _, id := range []int{hosts + i, 10 + hosts + i} {
			if err := e.ceph.Purge(context.Background(), ceph.Ref{ID: id}, true); err != nil {
				panic(err)
			}
		}
		if err := e.ceph.CrushRemove(context.Background(), host); err != nil {
			panic(err)
		}
	}
	return e
}

func numbers(from, to int) journal.RookChange {
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{
		journal.PoolPlace(journal.OldMgrPool, journal.PoolSize):    {From: from, To: to},
		journal.PoolPlace(journal.OldMgrPool, journal.PoolMinSize): {From: from - from/2, To: to - to/2},
	}}
	if to > from {
		change.Hosts = to
	}
	return change
}

// said is what has become of Ceph.
func (e *estate) said() string {
	pools, err := e.ceph.Pools(context.Background())
	if err != nil {
		return err.Error()
	}
	option, changed := e.ceph.Option(cephsim.SizeOne), 0
	for _, effect := range e.ceph.Effects() {
		if effect.Changed && strings.HasPrefix(effect.Name, "pool-set ") {
			changed++
		}
	}
	return fmt.Sprintf("size %d, min_size %d, option %q own %t, %d changes", pools[0].Size, pools[0].MinSize, option.Value, option.Own, changed)
}

func poolScene(points, from, to int, option ceph.Option) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(w *actionstest.World) actionstest.Stage {
		onItsTerms(w)
		e := mgrPool(from, option)
		if to < from {
			e.onHosts(to)
		}
		w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionSetCephPools, Input: numbers(from, to)})
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return e.over(mortalCeph{e.ceph, f}) },
			Outcome: e.said,
		}
	}}
}

// over are the actions with another client of Ceph.
func (e *estate) over(of Ceph) []actions.Definition {
	return New(Dependencies{Rook: rook.NewCustom(e.objects), Ceph: of, Nodes: e.kube, Removed: e.removed, IsLowSpaceCheck: fsmrook.IsLowSpaceCheck, Changed: func() {}})
}

// mortalCeph is Ceph as one incarnation of the process reaches it: each change is between two
// crash points, since a step makes several.
type mortalCeph struct {
	Ceph
	fuse *actionstest.Fuse
}

func (m mortalCeph) Tree(ctx context.Context) (tree ceph.Tree, err error) {
	if err := m.fuse.Alive(); err != nil {
		return tree, err
	}
	return m.Ceph.Tree(ctx)
}

func (m mortalCeph) Pools(ctx context.Context) ([]ceph.Pool, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Ceph.Pools(ctx)
}

func (m mortalCeph) MonOption(ctx context.Context, name string) (option ceph.Option, err error) {
	if err := m.fuse.Alive(); err != nil {
		return option, err
	}
	return m.Ceph.MonOption(ctx, name)
}

func (m mortalCeph) SetPoolNumber(ctx context.Context, pool, setting string, value int, sure bool) error {
	return m.fuse.Around("pool-set", func() error { return m.Ceph.SetPoolNumber(ctx, pool, setting, value, sure) })
}

func (m mortalCeph) SetMonOption(ctx context.Context, name, value string) error {
	return m.fuse.Around("option-set", func() error { return m.Ceph.SetMonOption(ctx, name, value) })
}

func (m mortalCeph) ResetMonOption(ctx context.Context, name string) error {
	return m.fuse.Around("option-reset", func() error { return m.Ceph.ResetMonOption(ctx, name) })
}

func TestTheCrashMatrixOfPools(t *testing.T) {
	actionstest.Scenes{
		"more copies":                       poolScene(10, 2, 3, ceph.Option{}),
		"a single copy that is allowed":     poolScene(10, 3, 1, ceph.Option{Value: "true"}),
		"a single copy":                     poolScene(20, 3, 1, ceph.Option{}),
		"a single copy that is not allowed": poolScene(20, 3, 1, ceph.Option{Value: "false", Own: true}),
	}.Run(t)
}

func TestTheOptionIsPutBackAsItWas(t *testing.T) {
	for _, option := range []ceph.Option{{}, {Value: "true"}, {Value: "true", Own: true}, {Value: "false", Own: true}} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			onItsTerms(w)
			e := mgrPool(3, option).onHosts(1)
			w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionSetCephPools, Input: numbers(3, 1)})
			w.RunToEnd(w.Config(e.definitions()))
			if now := e.ceph.Option(cephsim.SizeOne); now != option || w.LastLine() != "ended done" || !strings.HasPrefix(e.said(), "size 1, min_size 1,") {
				t.Errorf("the option is %+v, and was %+v: %s: %q", now, option, e.said(), w.Story())
			}
		})
	}
}

func TestAPoolThatIsNotWhatItWasIsLeftAlone(t *testing.T) {
	checks := func(e *estate, kind actions.VerdictKind, key string) {
		t.Helper()
		record := journal.ActionRecord{Subject: e.subject}
		record.Request.Input = numbers(3, 1)
		if verdict := e.definitions()[3].Preflights[CephPoolsUnchanged].Check(t.Context(), record); verdict.Kind != kind || verdict.Key != key {
			t.Errorf("it says %+v, want %s about %q", verdict, kind, key)
		}
	}
	e := mgrPool(3, ceph.Option{})
	checks(e, actions.VerdictPass, "")
	e.ceph.Outage(true)
	checks(e, actions.VerdictHold, "unread")
	e.ceph.Outage(false)
	e.subject.UID = "another"
	checks(e, actions.VerdictAbandon, "replaced")
	checks(mgrPool(2, ceph.Option{}), actions.VerdictAbandon, "moved")
}

func TestNoPoolIsGivenMoreCopiesThanThereIsRoomFor(t *testing.T) {
	e := mgrPool(2, ceph.Option{})
	for _, id := range []int{0, 1, 2, 10, 11, 12} {
		e.ceph.Shrink(id, 1<<30)
	}
	e.ceph.Fill(journal.OldMgrPool, 2<<30)
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = numbers(2, 3)
	of := Dependencies{Ceph: e.ceph}.setPoolsDefinition()
	plan, err := of.Plan(t.Context(), record)
	if err != nil || !slices.Contains(plan.Steps[0].Preflights, StorageHostsThere) || !slices.Contains(plan.Steps[0].Preflights, RoomForCopies) || slices.Contains(plan.Steps[1].Preflights, RoomForCopies) {
		t.Fatalf("%v: the plan is %+v", err, plan)
	}
	if verdict := of.Preflights[RoomForCopies].Check(t.Context(), record); verdict.Kind != actions.VerdictHold || verdict.Key != "room" {
		t.Errorf("it says %+v", verdict)
	}
	e.ceph.Fill(journal.OldMgrPool, 1<<30)
	if verdict := of.Preflights[RoomForCopies].Check(t.Context(), record); verdict.Kind != actions.VerdictPass {
		t.Errorf("with room it says %+v", verdict)
	}
	record.Request.Input = numbers(3, 2)
	if plan, err := of.Plan(t.Context(), record); err != nil || slices.Contains(plan.Steps[0].Preflights, RoomForCopies) {
		t.Errorf("%v: fewer copies are asked for room: %+v", err, plan)
	}
}

func TestAnOlderCephNeedsNeitherSwitchNorOption(t *testing.T) {
	e := mgrPool(3, ceph.Option{})
	old := Dependencies{Ceph: octopus{e.ceph}}.setPoolsDefinition()
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = numbers(3, 1)
	plan, err := old.Plan(t.Context(), record)
	if err != nil || len(plan.Steps) != 2 || len(plan.Undo) != 0 || strings.Contains(string(plan.Facts), "sure") {
		t.Errorf("%v: the plan is %+v", err, plan)
	}
	if plan.Steps[0].ID != journal.PoolPlace(journal.OldMgrPool, journal.PoolSize) || plan.Steps[1].After[0] != plan.Steps[0].ID {
		t.Errorf("the order is %+v", plan.Steps)
	}
}

// octopus is a Ceph before the switch.
type octopus struct{ *cephsim.Cluster }

func (octopus) Version(context.Context) (ceph.Version, error) { return ceph.Version{Major: 15}, nil }

// TestThePoolOfTheMgrIsLoweredAsCarefullyAsAnyOther: but that it is not served is why there is
// something to lower.
func TestThePoolOfTheMgrIsLoweredAsCarefullyAsAnyOther(t *testing.T) {
	record := journal.ActionRecord{Subject: journal.RookCeph}
	record.Request.Input = numbers(3, 1)
	of := mgrPool(3, ceph.Option{Value: "true"}).definitions()[3]
	plan, err := of.Plan(t.Context(), record)
	if want := append([]string{CephPoolsUnchanged}, safelyLowered()...); err != nil || !slices.Equal(plan.Steps[0].Preflights, want) || slices.Contains(plan.Steps[1].Preflights, CopiesComplete) {
		t.Fatalf("%v: the plan is %+v, want %q", err, plan.Steps, want)
	}
	warns := func(code string, severity ceph.Status, muted bool) func(*estate) {
		return func(e *estate) {
			e.ceph.SetHealth(ceph.Health{Status: severity, Checks: []ceph.Check{{Code: code, Severity: severity, Muted: muted}}})
		}
	}
	for name, test := range map[string]struct {
		preflight string
		meanwhile func(*estate)
		kind      actions.VerdictKind
		key       string
	}{
		"as many hosts":     {StorageHostsGone, nil, actions.VerdictPass, ""},
		"a host more":       {StorageHostsGone, func(e *estate) { e.ceph.AddHost("d", 13) }, actions.VerdictAbandon, "hosts"},
		"a host more, down": {StorageHostsGone, func(e *estate) { e.ceph.AddHost("d", 13); e.ceph.LoseHost("d") }, actions.VerdictAbandon, "hosts"},
		"on hosts":          {PoolOnHosts, nil, actions.VerdictPass, ""},
		"on OSDs": {PoolOnHosts, func(e *estate) {
			e.ceph.ChangePool(journal.OldMgrPool, func(p *ceph.Pool) { p.Domain = ceph.DomainOSD })
		}, actions.VerdictAbandon, "rule"},
		"not served":              {CopiesComplete, nil, actions.VerdictPass, "complete"},
		"another is not":          {CopiesComplete, func(e *estate) { e.ceph.AddPool("other", 3, 2) }, actions.VerdictHold, "incomplete"},
		"its OSDs down":           {CopiesComplete, func(e *estate) { e.ceph.LoseHost("a") }, actions.VerdictHold, "incomplete"},
		"said not to be served":   {CephWithoutTrouble, warns("PG_AVAILABILITY", ceph.HealthWarn, false), actions.VerdictPass, ""},
		"its writes are slow":     {CephWithoutTrouble, warns("SLOW_OPS", ceph.HealthWarn, false), actions.VerdictPass, ""},
		"the mgr cannot write":    {CephWithoutTrouble, warns("MGR_MODULE_ERROR", ceph.HealthErr, false), actions.VerdictPass, ""},
		"unfound":                 {CephWithoutTrouble, warns("OBJECT_UNFOUND", ceph.HealthWarn, false), actions.VerdictHold, "OBJECT_UNFOUND"},
		"full, and muted":         {CephWithoutTrouble, warns("OSD_FULL", ceph.HealthErr, true), actions.VerdictHold, "OSD_FULL"},
		"something new and muted": {CephWithoutTrouble, warns("SOMETHING_NEW", ceph.HealthErr, true), actions.VerdictPass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := mgrPool(3, ceph.Option{Value: "true"}).onHosts(1)
			if test.meanwhile != nil {
				test.meanwhile(e)
			}
			if got := e.definitions()[3].Preflights[test.preflight].Check(t.Context(), record); got.Kind != test.kind || got.Key != test.key {
				t.Errorf("%s says %+v, want %s about %q", test.preflight, got, test.kind, test.key)
			}
		})
	}
	users := smaller(size3)
	warns("PG_AVAILABILITY", ceph.HealthWarn, false)(users)
	if got := users.says(t, CephWithoutTrouble, lowered()); got.Kind != actions.VerdictHold {
		t.Errorf("of a pool that users have it says %+v", got)
	}
}

// unlisted is a Ceph that does not list its pools.
type unlisted struct{ Ceph }

func (unlisted) Pools(context.Context) ([]ceph.Pool, error) { return nil, ceph.ErrUnavailable }

func TestANumberOfAPoolThatCannotBeReadIsNotSet(t *testing.T) {
	e := mgrPool(3, ceph.Option{})
	before := e.said()
	if _, err := (setNumber{Dependencies{Ceph: unlisted{e.ceph}, Changed: func() {}}}).Do(t.Context(), sizeStep(t, 1, 3)); !errors.Is(err, ceph.ErrUnavailable) || e.said() != before {
		t.Errorf("%v: %s", err, e.said())
	}
}

// sizeStep is the step that sets the size of the old mgr pool.
func sizeStep(t *testing.T, from, to int) actions.StepContext {
	t.Helper()
	facts, err := json.Marshal(poolsPlan{RookChange: numbers(from, to)})
	if err != nil {
		t.Fatal(err)
	}
	return actions.StepContext{
		Action:  journal.ActionRecord{Plan: journal.Plan{Facts: facts}},
		Planned: journal.PlannedStep{ID: journal.PoolPlace(journal.OldMgrPool, journal.PoolSize)},
	}
}

// TestASizeThatThePoolHasAlreadyIsNotSetAgain: another client may have set it, and Ceph would reset
// min_size.
func TestASizeThatThePoolHasAlreadyIsNotSetAgain(t *testing.T) {
	e := mgrPool(3, ceph.Option{})
	if err := e.ceph.SetPoolNumber(t.Context(), journal.OldMgrPool, ceph.PoolMinSize, 3, false); err != nil {
		t.Fatal(err)
	}
	parts := Dependencies{Ceph: e.ceph, Changed: func() {}}
	if _, err := (setNumber{parts}).Do(t.Context(), sizeStep(t, 1, 3)); err != nil || e.said() != `size 3, min_size 3, option "" own false, 1 changes` {
		t.Errorf("%v: %s", err, e.said())
	}
}
