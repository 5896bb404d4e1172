package rook

import (
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// behind is a world in which the pool shall have three copies, and node b be listed.
func behind(t *testing.T) *world {
	w := newWorld(t, limits, "a", "b")
	w.cluster(asks(1, lists("a")))
	w.hosts(3)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	return w
}

// ends expects that the action is cancelled for that reason.
func (w *world) ends(of journal.Subject, kind journal.ActionKind, reason string) {
	w.T.Helper()
	w.Decide()
	if rec := w.open(of, kind); rec == nil || rec.Cancelling == nil || !strings.Contains(rec.Cancelling.Reason, reason) {
		w.T.Errorf("%s is %+v, want it cancelled: %s", kind, rec, reason)
	}
}

// TestWhileANodeIsBeingPurgedNothingIsRaised: it would not be lowered when its host is gone.
func TestWhileANodeIsBeingPurgedNothingIsRaised(t *testing.T) {
	w := behind(t)
	purge := w.purge("b")
	for _, wish := range []struct {
		of   journal.Subject
		kind journal.ActionKind
	}{{pool, journal.ActionRaiseCopies}, {cephCluster, journal.ActionAddCephDaemons}} {
		if rec, _ := w.asked(wish.of, wish.kind); rec != nil {
			t.Errorf("EKCO asks for %+v", rec.Request)
		}
	}
	w.End(purge, journal.OutcomeCancelled)
	w.wants(pool, journal.ActionRaiseCopies)
	w.wants(cephCluster, journal.ActionAddCephDaemons)
	w.purge("b")
	w.ends(pool, journal.ActionRaiseCopies, "node b is being purged")
	w.ends(cephCluster, journal.ActionAddCephDaemons, "node b is being purged")
}

func TestAPurgeThatIsOnlyShownKeepsNothingFromBeingRaised(t *testing.T) {
	w := behind(t)
	w.Write(journal.Draft{
		Type: journal.TypeActionRequested, Subject: nodeOf("b"), Action: "purge-b", Actor: "cli:root@a",
		Payload: journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "so", Manual: true, DryRun: true},
	})
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestAPoolThatIsNotConfiguredIsLeftAlone(t *testing.T) {
	w := behind(t)
	w.wants(pool, journal.ActionRaiseCopies)
	without := limits
	without.Pools = configured[1:]
	w.P = w.P.With(Machine, without)
	w.ends(pool, journal.ActionRaiseCopies, "the configuration no longer has this pool")
	w.End(w.open(pool, journal.ActionRaiseCopies), journal.OutcomeCancelled)
	w.quiet(pool)
}

func TestNewSettingsEndWhatHasNotBegun(t *testing.T) {
	for name, test := range map[string]struct {
		of     journal.Subject
		kind   journal.ActionKind
		set    func(p *Policy)
		reason string
	}{
		"fewer copies":         {pool, journal.ActionRaiseCopies, func(p *Policy) { p.MaxCopies = 1 }, "replicated.size must be 1 at most"},
		"the list is a user's": {cephCluster, journal.ActionAddStorageNodes, func(p *Policy) { p.UserManaged = true }, "rook_storage_nodes is set"},
		"a label":              {cephCluster, journal.ActionAddStorageNodes, func(p *Policy) { p.Label, p.Value = "store", "yes" }, "node b no longer has label store=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := behind(t)
			w.wants(test.of, test.kind)
			p := limits
			test.set(&p)
			w.P = w.P.With(Machine, p)
			w.ends(test.of, test.kind, test.reason)
		})
	}
}

// stall has the action try in vain until it waits for a person.
func (w *world) stall(rec *journal.ActionRecord) {
	w.T.Helper()
	for _, payload := range []journal.Payload{
		journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepChangeRook}}}},
		journal.StepStarted{Step: journal.StepChangeRook, Attempt: 1},
		journal.StepFailed{Step: journal.StepChangeRook, Attempt: 1, Error: "forbidden"},
		journal.ActionStalled{Step: journal.StepChangeRook, Reason: "forbidden"},
	} {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Actor: "operator", Payload: payload})
	}
}

func TestWhatStalledGivesWay(t *testing.T) {
	t.Run("to another wish", func(t *testing.T) {
		w := behind(t)
		rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
		w.stall(rec)
		w.Decide()
		if rec := w.open(cephCluster, journal.ActionAddStorageNodes); rec.Cancelling != nil {
			t.Errorf("it is cancelled because %s", rec.Cancelling.Reason)
		}
		w.join("c")
		w.ends(cephCluster, journal.ActionAddStorageNodes, "EKCO now wants b, c")
	})
	t.Run("when somebody else did it", func(t *testing.T) {
		w := behind(t)
		rec, _ := w.wants(pool, journal.ActionRaiseCopies)
		w.stall(rec)
		w.pools(pool, 2, map[string]int{poolSize: 2})
		w.ends(pool, journal.ActionRaiseCopies, "nothing is left to change")
	})
	t.Run("not while it tries", func(t *testing.T) {
		w := behind(t)
		rec, _ := w.wants(pool, journal.ActionRaiseCopies)
		w.Write(journal.Draft{
			Type: journal.TypeActionPlanned, Subject: rec.Subject, Action: rec.ID, Actor: "operator",
			Payload: journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepChangeRook}}}},
		}, journal.Draft{
			Type: journal.TypeStepStarted, Subject: rec.Subject, Action: rec.ID, Actor: "operator",
			Payload: journal.StepStarted{Step: journal.StepChangeRook, Attempt: 1},
		})
		w.pools(pool, 2, map[string]int{poolSize: 3})
		w.Decide()
		if rec := w.open(pool, journal.ActionRaiseCopies); rec.Cancelling != nil {
			t.Errorf("it is cancelled because %s", rec.Cancelling.Reason)
		}
	})
}

// TestWhatHasBegunGoesOn: a raise through a purge, and a lowering though its own effect leaves
// nothing to lower; neither rule is asked again.
func TestWhatHasBegunGoesOn(t *testing.T) {
	w := behind(t)
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.begins(rec)
	w.purge("b")
	w.goesOn(rec)

	w = shrunk(t, limits)
	w.Pass(lowerDelay)
	rec, _ = w.wants(pool, journal.ActionLowerCopies)
	w.begins(rec)
	w.pools(pool, 2, map[string]int{poolSize: 2})
	w.goesOn(rec)
	w.cluster(journal.RookFacts{Generation: 2, Version: "v1.10.0"}) // which is being deleted
	w.goesOn(rec)

	terms, err := fsm.TermsByKind(Capability())
	if err != nil {
		t.Fatal(err)
	}
	for kind, of := range terms {
		for _, rule := range []string{RulePurgeOpen, RuleHostMayReturn} {
			if slices.Contains(of.Rules, rule) {
				t.Errorf("%s that has begun obeys %s", kind, rule)
			}
		}
	}
}

func TestEveryKindObeysTheCommonRules(t *testing.T) {
	for _, kind := range kinds() {
		for _, rule := range []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleRookVersion} {
			if !slices.Contains(kind.Rules, rule) {
				t.Errorf("%s does not obey %s", kind.Name, rule)
			}
		}
		if !slices.Contains(kind.Domains, journal.DomainStorage) {
			t.Errorf("%s does not take the storage", kind.Name)
		}
	}
}

// TestTheLeastCountsForWhatIsOpenToo: also where the most is less, which is a mistake of somebody's.
func TestTheLeastCountsForWhatIsOpenToo(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 3, MaxCopies: 2, Pools: configured})
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(1)
	w.pools(pool, 1, map[string]int{poolSize: 2})
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.goesOn(rec)
}

func TestALoweringThatIsToGoFurtherIsAskedForAnew(t *testing.T) {
	w := shrunk(t, limits)
	w.Pass(lowerDelay)
	w.wants(pool, journal.ActionLowerCopies)
	w.crush(1, "a.local")
	w.ends(pool, journal.ActionLowerCopies, "EKCO now wants replicated.size 1")
}

func TestALoweringThatHasNotBegunWaitsForAHostThatMayReturn(t *testing.T) {
	w := newWorld(t, limits, "a", "b", "d")
	w.cluster(asks(1, lists("a", "b", "d"), has(3, 2)))
	w.crush(4, "a.local", "b.local", "c.local", "d.local")
	w.pools(pool, 1, map[string]int{poolSize: 4})
	w.crush(3, "a.local", "b.local", "d.local")
	w.Pass(lowerDelay)
	w.wants(pool, journal.ActionLowerCopies) // to three
	w.pools(pool, 1, map[string]int{poolSize: 4})
	w.crush(2, "a.local", "b.local")
	w.Decide()
	if rec := w.open(pool, journal.ActionLowerCopies); rec == nil || rec.Cancelling != nil {
		t.Errorf("three copies have places with the host that may return: %+v", rec)
	}
}
