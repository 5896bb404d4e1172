package rook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

const size3 = `{"spec":{"replicated":{"size":3},"x":1}}`

// smaller is an estate of which host c is gone for good: its node, its OSDs and its place in the
// CRUSH map. Pool replicapool has three copies, of which one is nowhere, and Rook's operator
// carries into Ceph at once what is asked of it.
func smaller(object string) *estate {
	e := installed(blockPool, object)
	e.kube.RemoveNode("c")
	e.ceph.LoseHost("c")
	ctx := context.Background()
	if err := errors.Join(e.ceph.Purge(ctx, ceph.Ref{ID: 2}, true), e.ceph.Purge(ctx, ceph.Ref{ID: 12}, true), e.ceph.CrushRemove(ctx, "c")); err != nil {
		panic(err)
	}
	e.ceph.AddPool("replicapool", 3, 2)
	e.operates()
	return e
}

// operates has a simulated operator of Rook at work.
func (e *estate) operates() {
	e.objects.OnWrite = func(_ kube.Ref, object map[string]any) {
		spec, _ := object["spec"].(map[string]any)
		replicated, _ := spec["replicated"].(map[string]any)
		if size, is := replicated["size"].(float64); is {
			e.ceph.ChangePool("replicapool", func(pool *ceph.Pool) { pool.Size = int(size) })
		}
	}
	e.objects.OnWrite(rook.ResourceRef(e.subject), e.objects.Object(rook.ResourceRef(e.subject)))
}

// lowered is what is asked for when host c is gone.
func lowered() journal.RookChange {
	return journal.RookChange{
		Numbers: map[string]journal.RookNumber{sizeAt: {From: 3, To: 2}},
		Gone:    []string{"c"},
	}
}

// lowerScene begins with the estate and a request to lower the copies; then may change the world
// as the patch arrives.
func lowerScene(content string, meanwhile func(*estate, int)) actionstest.Scene {
	return actionstest.Scene{Points: 8, Set: func(w *actionstest.World) actionstest.Stage {
		onItsTerms(w)
		e, patches := smaller(content), 0
		e.objects.BeforeEffect = func(string) {
			if patches++; meanwhile != nil {
				meanwhile(e, patches)
			}
		}
		w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: lowered()})
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(e.definitions()...) },
			Outcome: e.outcome,
		}
	}}
}

func TestTheCrashMatrixOfLowering(t *testing.T) {
	first := func(spec string) func(*estate, int) {
		return func(e *estate, patches int) {
			if patches == 1 {
				e.edit(spec)
			}
		}
	}
	actionstest.Scenes{
		"copies":                            lowerScene(size3, nil),
		"copies as they should":             lowerScene(`{"spec":{"replicated":{"size":2}}}`, nil),
		"copies that somebody else changes": lowerScene(size3, first(`{"replicated":{"size":4}}`)),
		"copies that somebody else lowers":  lowerScene(size3, first(`{"replicated":{"size":2}}`)),
		"a pool that gets an erasure code":  lowerScene(size3, first(`{"erasureCoded":{"dataChunks":2}}`)),
		"a pool that is replaced meanwhile": lowerScene(size3, func(e *estate, patches int) {
			if patches == 1 {
				e.objects.Remove(rook.ResourceRef(e.subject))
				e.objects.Put(rook.ResourceRef(e.subject), size3)
			}
		}),
	}.Run(t)
}

// TestTwoEKCOsLowerOnce: each has a journal of its own, and both have read the object before
// either changes it.
func TestTwoEKCOsLowerOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := smaller(size3)
		e.objects.SetLatency(1e9)
		other := actionstest.NewWorld(w.T)
		onItsTerms(w)
		onItsTerms(other)
		for _, each := range []*actionstest.World{w, other} {
			each.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: lowered()})
		}
		second := other.Start(other.Config(e.definitions()))
		w.RunToEnd(w.Config(e.definitions()))
		second.End()
		if got, want := e.outcome(), `{"replicated":{"size":2},"x":1}, generation 2`; got != want || w.LastLine() != "ended done" || other.LastLine() != "ended done" {
			t.Errorf("it is %s: %q, %q", got, w.Story(), other.Story())
		}
	})
}

// TestALoweringLastsUntilCephHasIt: while Rook's operator does not carry it out the action is
// held, and when it does it ends; what somebody else sets back meanwhile ends it too.
func TestALoweringLastsUntilCephHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*estate)
		last string
	}{
		"carried out at last": {func(e *estate) { e.ceph.ChangePool("replicapool", func(p *ceph.Pool) { p.Size = 2 }) }, "ended done"},
		"set back":            {func(e *estate) { e.edit(`{"replicated":{"size":3}}`) }, "ended abandoned"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				onItsTerms(w)
				e := smaller(size3)
				e.objects.OnWrite = nil
				w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: lowered()})
				runs := w.Start(w.Config(e.definitions()))
				time.Sleep(time.Hour) // of the bubble
				if held := w.Record().Holds[journal.StepRookCarried]; held.Preflight != RookCarried || w.Record().Stalled != nil {
					t.Errorf("after an hour it is held by %+v", held)
				}
				test.then(e)
				runs.End()
				if !strings.HasPrefix(w.LastLine(), test.last) {
					t.Errorf("it came to %q", w.Story())
				}
			})
		})
	}
}

func TestADryRunOfLoweringDoesNotWaitForWhatItDidNotAskFor(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		onItsTerms(w)
		e := smaller(size3)
		w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: lowered(), DryRun: true})
		w.RunToEnd(w.Config(e.definitions()))
		if !strings.HasPrefix(w.LastLine(), "ended dry-run") {
			t.Errorf("it came to %q", w.Story())
		}
	})
}

// says is what a preflight answers about a lowering.
func (e *estate) says(t *testing.T, name string, change journal.RookChange) actions.Verdict {
	t.Helper()
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = change
	definitions := e.definitions()
	i := slices.IndexFunc(definitions, func(d actions.Definition) bool { return d.Kind == journal.ActionLowerCopies })
	return inNoTime(t, definitions[i].Preflights[name], record)
}

func TestEachConditionOfLoweringHoldsByItself(t *testing.T) {
	health := func(checks ...ceph.Check) func(*estate) {
		return func(e *estate) { e.ceph.SetHealth(ceph.Health{Status: ceph.HealthWarn, Checks: checks}) }
	}
	warns := func(code string) func(*estate) {
		return health(ceph.Check{Code: code, Severity: ceph.HealthWarn, Message: "m"})
	}
	pool := func(change func(*ceph.Pool)) func(*estate) {
		return func(e *estate) { e.ceph.ChangePool("replicapool", change) }
	}
	one, dotted := lowered(), lowered()
	dotted.Gone = []string{"c-d"}
	one.Numbers = map[string]journal.RookNumber{sizeAt: {From: 3, To: 1}}
	for name, test := range map[string]struct {
		preflight string
		meanwhile func(*estate)
		change    journal.RookChange
		kind      actions.VerdictKind
		key       string
	}{
		"host gone":              {StorageHostsGone, nil, lowered(), actions.VerdictPass, ""},
		"host back":              {StorageHostsGone, func(e *estate) { e.ceph.AddHost("c", 12) }, lowered(), actions.VerdictAbandon, "host back"},
		"host back, and down":    {StorageHostsGone, func(e *estate) { e.ceph.AddHost("c", 12); e.ceph.LoseHost("c") }, lowered(), actions.VerdictAbandon, "host back"},
		"host back without OSDs": {StorageHostsGone, func(e *estate) { e.ceph.AddHost("c") }, lowered(), actions.VerdictAbandon, "host back"},
		"another host":           {StorageHostsGone, func(e *estate) { e.ceph.AddHost("d", 13) }, lowered(), actions.VerdictAbandon, "hosts"},
		"another host, down":     {StorageHostsGone, func(e *estate) { e.ceph.AddHost("d", 13); e.ceph.LoseHost("d") }, lowered(), actions.VerdictAbandon, "hosts"},
		"another host, no OSDs":  {StorageHostsGone, func(e *estate) { e.ceph.AddHost("d") }, lowered(), actions.VerdictAbandon, "hosts"},
		"fewer than hosts":       {StorageHostsGone, nil, one, actions.VerdictAbandon, "hosts"},
		"its node back":          {StorageHostsGone, func(e *estate) { e.kube.AddNode("c", journal.RoleWorker) }, lowered(), actions.VerdictAbandon, "node there"},
		"its node by hostname":   {StorageHostsGone, func(e *estate) { e.kube.AddNode("n", journal.RoleWorker); e.kube.SetHostname("n", "c") }, lowered(), actions.VerdictAbandon, "node there"},
		"its node with dots":     {StorageHostsGone, func(e *estate) { e.kube.AddNode("c.d", journal.RoleWorker) }, dotted, actions.VerdictAbandon, "node there"},
		"nodes unread":           {StorageHostsGone, func(e *estate) { e.kube.Forbid(kubesim.ListNodes) }, lowered(), actions.VerdictHold, "nodes unread"},
		"no Ceph":                {StorageHostsGone, func(e *estate) { e.ceph.Outage(true) }, lowered(), actions.VerdictHold, "hosts unread"},

		"on hosts":         {PoolOnHosts, nil, lowered(), actions.VerdictPass, ""},
		"on OSDs":          {PoolOnHosts, pool(func(p *ceph.Pool) { p.Domain = ceph.DomainOSD }), lowered(), actions.VerdictAbandon, "rule"},
		"by no plain rule": {PoolOnHosts, pool(func(p *ceph.Pool) { p.Domain = "" }), lowered(), actions.VerdictAbandon, "rule"},
		"erasure code":     {PoolOnHosts, pool(func(p *ceph.Pool) { p.Erasure = true }), lowered(), actions.VerdictAbandon, "erasure"},
		"larger in Ceph":   {PoolOnHosts, pool(func(p *ceph.Pool) { p.Size = 4 }), lowered(), actions.VerdictHold, "size"},
		"not in Ceph":      {PoolOnHosts, pool(func(p *ceph.Pool) { p.Name = "other" }), lowered(), actions.VerdictHold, "no pool"},
		"pools unread":     {PoolOnHosts, func(e *estate) { e.ceph.Outage(true) }, lowered(), actions.VerdictHold, "pools unread"},

		"only copies lack":      {CephWithoutTrouble, nil, lowered(), actions.VerdictPass, ""},
		"OSDs down":             {CephWithoutTrouble, warns("OSD_DOWN"), lowered(), actions.VerdictPass, ""},
		"hosts down":            {CephWithoutTrouble, warns("OSD_HOST_DOWN"), lowered(), actions.VerdictPass, ""},
		"a monitor lost":        {CephWithoutTrouble, warns("MON_DOWN"), lowered(), actions.VerdictPass, ""},
		"a standby MDS lost":    {CephWithoutTrouble, warns("MDS_INSUFFICIENT_STANDBY"), lowered(), actions.VerdictPass, ""},
		"clocks apart":          {CephWithoutTrouble, warns("MON_CLOCK_SKEW"), lowered(), actions.VerdictPass, ""},
		"unfound":               {CephWithoutTrouble, warns("OBJECT_UNFOUND"), lowered(), actions.VerdictHold, "OBJECT_UNFOUND"},
		"inconsistent":          {CephWithoutTrouble, warns("PG_DAMAGED"), lowered(), actions.VerdictHold, "PG_DAMAGED"},
		"nearly full":           {CephWithoutTrouble, warns("OSD_NEARFULL"), lowered(), actions.VerdictHold, "OSD_NEARFULL"},
		"full, and muted":       {CephWithoutTrouble, health(ceph.Check{Code: "OSD_FULL", Severity: ceph.HealthErr, Muted: true}), lowered(), actions.VerdictHold, "OSD_FULL"},
		"full":                  {CephWithoutTrouble, warns("POOL_FULL"), lowered(), actions.VerdictHold, "POOL_FULL"},
		"kept from recovering":  {CephWithoutTrouble, warns("OSDMAP_FLAGS"), lowered(), actions.VerdictHold, "OSDMAP_FLAGS"},
		"unknown":               {CephWithoutTrouble, warns("SOMETHING_NEW"), lowered(), actions.VerdictHold, "SOMETHING_NEW"},
		"degraded, as an error": {CephWithoutTrouble, health(ceph.Check{Code: "PG_DEGRADED", Severity: ceph.HealthErr}), lowered(), actions.VerdictHold, "PG_DEGRADED"},
		"no mgr":                {CephWithoutTrouble, func(e *estate) { e.ceph.LoseMgr(true) }, lowered(), actions.VerdictHold, "no mgr"},
		"health unread":         {CephWithoutTrouble, func(e *estate) { e.ceph.Outage(true) }, lowered(), actions.VerdictHold, "health unread"},

		"complete":      {CopiesComplete, nil, lowered(), actions.VerdictPass, "complete"},
		"another lost":  {CopiesComplete, func(e *estate) { e.ceph.LoseHost("b") }, lowered(), actions.VerdictHold, "incomplete"},
		"another pool":  {CopiesComplete, func(e *estate) { e.ceph.AddPool("other", 4, 3) }, lowered(), actions.VerdictHold, "incomplete"},
		"copies unread": {CopiesComplete, func(e *estate) { e.ceph.LoseMgr(true) }, lowered(), actions.VerdictHold, "copies unread"},

		"carried out":   {RookCarried, func(e *estate) { e.edit(`{"replicated":{"size":2}}`) }, lowered(), actions.VerdictPass, ""},
		"not yet":       {RookCarried, func(e *estate) { e.objects.OnWrite = nil; e.edit(`{"replicated":{"size":2}}`) }, lowered(), actions.VerdictHold, "uncarried"},
		"set back":      {RookCarried, func(e *estate) { e.edit(`{"replicated":{"size":3}}`) }, lowered(), actions.VerdictAbandon, "moved"},
		"size unread":   {RookCarried, func(e *estate) { e.objects.Forbid("get cephblockpools") }, lowered(), actions.VerdictHold, "unread"},
		"Ceph unread":   {RookCarried, func(e *estate) { e.edit(`{"replicated":{"size":2}}`); e.ceph.Outage(true) }, lowered(), actions.VerdictHold, "pools unread"},
		"two at a time": {StorageHostsGone, nil, journal.RookChange{Numbers: map[string]journal.RookNumber{"/a": {}, "/b": {}}}, actions.VerdictHold, "input"},
	} {
		t.Run(name, func(t *testing.T) {
			e := smaller(size3)
			if test.meanwhile != nil {
				test.meanwhile(e)
			}
			if got := e.says(t, test.preflight, test.change); got.Kind != test.kind || got.Key != test.key {
				t.Errorf("%s says %+v, want %s about %q", test.preflight, got, test.kind, test.key)
			}
		})
	}
}

func TestThatCopiesAreCompleteCountsOnlyOnceItHasLasted(t *testing.T) {
	if got := smaller(size3).says(t, CopiesComplete, lowered()); got.Lasting != completeFor || !strings.Contains(got.Reason, "are settled with 2 copies") {
		t.Errorf("it says %+v", got)
	}
}

func TestALoweringIsPlannedForOneNumberAndForAHostThatIsGone(t *testing.T) {
	record := journal.ActionRecord{Subject: blockPool}
	record.Request.Input = lowered()
	plan, err := actions.PlanOf(planLower)(t.Context(), record)
	if err != nil || len(plan.Steps) != 2 {
		t.Fatalf("the plan is %+v, %v", plan, err)
	}
	change, wait := plan.Steps[0], plan.Steps[1]
	if want := []string{RookUnchanged, StorageHostsGone, PoolOnHosts, CephWithoutTrouble, CopiesComplete}; !slices.Equal(change.Preflights, want) || !slices.Equal(change.Domains, []string{journal.DomainStorage}) {
		t.Errorf("the change is %+v", change)
	}
	if want := []string{RookUnchanged, RookCarried}; !slices.Equal(wait.Preflights, want) || wait.Domains == nil || len(wait.Domains) > 0 || !slices.Equal(wait.After, []string{change.ID}) {
		t.Errorf("what follows is %+v", wait)
	}
	for name, change := range map[string]journal.RookChange{
		"nothing":     {Gone: lowered().Gone},
		"no host":     {Numbers: lowered().Numbers},
		"more copies": {Numbers: map[string]journal.RookNumber{sizeAt: {From: 2, To: 3}}, Gone: lowered().Gone},
		"two numbers": {Numbers: map[string]journal.RookNumber{sizeAt: {From: 3, To: 2}, "/other": {From: 3, To: 2}}, Gone: lowered().Gone},
	} {
		record.Request.Input = change
		if plan, err := actions.PlanOf(planLower)(t.Context(), record); err == nil {
			t.Errorf("%s: the plan is %+v", name, plan)
		}
	}
}

// byCommand is [lowered] with a Rook that carries no lower number into Ceph.
func byCommand() journal.RookChange {
	change := lowered()
	change.ByCommand = true
	return change
}

// TestTheCrashMatrixOfLoweringByCommand: no operator of Rook's carries anything out.
func TestTheCrashMatrixOfLoweringByCommand(t *testing.T) {
	actionstest.Scenes{"pools": {Points: 10, Set: func(w *actionstest.World) actionstest.Stage {
		onItsTerms(w)
		e := smaller(size3)
		e.objects.OnWrite = nil
		w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: byCommand()})
		return actionstest.Stage{
			Kinds: func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(e.definitions()...) },
			Outcome: func() string {
				pools, err := e.ceph.Pools(context.Background())
				if err != nil {
					return err.Error()
				}
				return fmt.Sprintf("%s, in Ceph %d", e.outcome(), pools[0].Size)
			},
		}
	}}}.Run(t)
	actionstest.InBubble(t, func(w *actionstest.World) {
		onItsTerms(w)
		e := smaller(size3)
		e.objects.OnWrite = nil
		e.ceph.AddPool("other", 3, 2)
		w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: byCommand()})
		w.RunToEnd(w.Config(e.definitions()))
		pools, err := e.ceph.Pools(t.Context())
		if err != nil || pools[0].Size != 2 || pools[1].Size != 3 {
			t.Errorf("%v: the pools are %+v", err, pools)
		}
	})
}

// TestWhatIsLoweredByCommandIsAskedAllAgain: between the patch and the command a host may be back.
func TestWhatIsLoweredByCommandIsAskedAllAgain(t *testing.T) {
	record := journal.ActionRecord{Subject: blockPool}
	record.Request.Input = byCommand()
	plan, err := actions.PlanOf(planLower)(t.Context(), record)
	if err != nil || len(plan.Steps) != 2 {
		t.Fatalf("%v: the plan is %+v", err, plan)
	}
	sets := plan.Steps[1]
	if want := append(slices.Clone(plan.Steps[0].Preflights), RookCarried); sets.Does != journal.StepLowerPools || !slices.Equal(sets.Preflights, want) || !slices.Equal(sets.Domains, []string{journal.DomainStorage}) {
		t.Errorf("by command it is %+v", sets)
	}
	e := smaller(`{"spec":{"replicated":{"size":2}}}`)
	e.ceph.SetPool("replicapool", 3)
	if got := e.says(t, RookCarried, byCommand()); got.Kind != actions.VerdictPass {
		t.Errorf("nobody carries it out, and it says %+v", got)
	}
	e.edit(`{"replicated":{"size":3}}`)
	if got := e.says(t, RookCarried, byCommand()); got.Kind != actions.VerdictAbandon {
		t.Errorf("somebody set it back, and it says %+v", got)
	}
}

// TestACancelOfALoweringIsHeardAtOnce, whatever it is waiting for.
func TestACancelOfALoweringIsHeardAtOnce(t *testing.T) {
	for name, meanwhile := range map[string]func(*estate){
		"for Rook's operator": func(e *estate) { e.objects.OnWrite = nil },
		"for Ceph's health": func(e *estate) {
			e.ceph.SetHealth(ceph.Health{Status: ceph.HealthErr, Checks: []ceph.Check{{Code: "X"}}})
		},
		"for copies":            func(e *estate) { e.ceph.AddPool("other", 4, 3) },
		"for Ceph's answer":     func(e *estate) { e.ceph.Hang(true) },
		"for the API":           func(e *estate) { e.objects.Forbid("get cephblockpools") },
		"for an answer to last": func(*estate) {},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				onItsTerms(w)
				e := smaller(size3)
				meanwhile(e)
				w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionLowerCopies, Input: lowered()})
				r := w.Start(w.Config(e.definitions()))
				w.Pass(7 * time.Second)
				if name != "for an answer to last" {
					w.Pass(time.Hour)
				}
				w.Cancel(r)
				if took := r.End(); took > time.Second || !strings.HasPrefix(w.LastLine(), "ended cancelled") {
					t.Errorf("it took %s: %q", took, w.Story())
				}
			})
		})
	}
}

// TestACancelDoesNotWaitForWhatIsAwaited: the look that let the step begin may be older than what
// Rook's operator does then.
func TestACancelDoesNotWaitForWhatIsAwaited(t *testing.T) {
	if !(Dependencies{Rook: &rook.Custom{}}).lowerDefinition().Steps[journal.StepRookCarried].Interruptible {
		t.Error("a cancel waits for Rook's operator")
	}
}

// TestByCommandNoPoolIsRaised: of several that one number is for, some may have fewer copies.
func TestByCommandNoPoolIsRaised(t *testing.T) {
	const at = "/spec/metadataPool/replicated/size"
	e := installed(journal.RookPools(journal.KindCephObjectStore, "store"), `{"spec":{"metadataPool":{"replicated":{"size":2}}}}`)
	e.ceph.AddPool(".rgw.root", 1, 1)
	e.ceph.AddPool("store.rgw.log", 3, 2)
	record := journal.ActionRecord{Subject: e.subject}
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{at: {From: 3, To: 2}}, Gone: []string{"c"}, ByCommand: true}
	record.Request.Input = change
	parts := Dependencies{Ceph: e.ceph, Changed: func() {}}
	if _, err := (lowerPools{parts}).Do(t.Context(), actions.StepContext{Action: record}, change); err != nil {
		t.Fatal(err)
	}
	pools, err := e.ceph.Pools(t.Context())
	if err != nil || pools[0].Size != 1 || pools[1].Size != 2 {
		t.Errorf("%v: the pools are %+v", err, pools)
	}
}

// TestWhatCephSetsWithTheSizeIsNobodyElses: once it is begun, min_size may be anything.
func TestWhatCephSetsWithTheSizeIsNobodyElses(t *testing.T) {
	e := mgrPool(2, ceph.Option{})
	e.ceph.ChangePool(journal.OldMgrPool, func(p *ceph.Pool) { p.MinSize = 7 })
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = numbers(3, 2)
	check := e.definitions()[3].Preflights[CephPoolsUnchanged]
	if got := check.Check(t.Context(), record); got.Key != "moved" {
		t.Errorf("before it is begun it says %+v", got)
	}
	record.Steps = map[string]journal.StepRecord{sizeOfMgrs: {}} // held
	if got := check.Check(t.Context(), record); got.Key != "moved" {
		t.Errorf("while it is held it says %+v", got)
	}
	record.Steps = map[string]journal.StepRecord{sizeOfMgrs: {StartedAt: time.Now()}}
	if got := check.Check(t.Context(), record); got.Kind != actions.VerdictPass {
		t.Errorf("once it is begun it says %+v", got)
	}
}
