package fsm

import (
	"slices"
	"testing"
	"time"
)

// claims asks for a step without beginning it.
func (c *crowd) claims(action, step string, domains ...string) bool {
	_, in := c.domains.Take(c.s, c.now, Claim{Action: action, Steps: []string{step}, Domains: domains})
	return in
}

// wantClaim claims, and wants the answer.
func (c *crowd) wantClaim(want bool, action, step string, domains ...string) {
	c.t.Helper()
	if in := c.claims(action, step, domains...); in != want {
		c.t.Fatalf("%s of %s is let in: %t, want %t", step, action, in, want)
	}
}

func (c *crowd) wantNewlyGrantable(want ...string) {
	c.t.Helper()
	if grantable := c.domains.NewlyGrantable(c.s, c.now); !slices.Equal(grantable, want) {
		c.t.Fatalf("newly grantable are %q, want %q", grantable, want)
	}
}

// newCrowdOf has actions that were requested in this order.
func newCrowdOf(t fataler, ids ...string) *crowd {
	c := newCrowd(t)
	for i, id := range ids {
		c.add(id, false, len(ids)-i, takes(time.Minute, "storage"))
	}
	return c
}

func TestWhoAsksForNothingIsLetInAndWhoIsNotOpenStandsInNobodysWay(t *testing.T) {
	c := newCrowdOf(t, "first")
	c.wantClaim(false, "ended", "s", "storage")
	c.wantClaim(true, "ended", "s")
	if _, in := c.domains.Take(c.s, c.now, Claim{Action: "first", Domains: []string{"storage"}}); !in {
		t.Error("no step has to wait")
	}
	c.wantClaim(true, "first", "s", "storage")
}

func TestWhoKeepsItsDomainsTriesAgainBeforeAnEarlierOneThatWaits(t *testing.T) {
	c := newCrowd(t)
	cut := takes(time.Second, "storage", "nodes")
	cut.KeepsDomains, cut.fails = true, 9
	purge := c.add("purge-w1", true, 9, takes(time.Minute, "storage"))
	cutOver := c.add("cut-over", false, 8, cut)
	c.wantIn(cutOver)
	c.now = c.now.Add(time.Second)
	c.end(cutOver)
	c.wantOut(purge, "cut-over changes the storage (step step-0); this continues when that step has ended")
	c.wantIn(cutOver)
	c.end(cutOver)
	// What it does not have yet is as for everybody else.
	c.wantClaim(false, "cut-over", "other", "storage", "control-plane")
}

func TestWhoWasLetInWaitsNoMore(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	third := c.turns[2]
	c.wantClaim(true, "second", "s", "storage")
	c.wantClaim(false, "first", "s", "storage")
	c.domains.Leave("second", "s")
	c.wantClaim(true, "first", "s", "storage")
	c.domains.Leave("second", "")
	c.wantOut(third, "first changes the storage (step s); this continues when that step has ended")
	c.domains.Began("first", "s") // and ended
	c.wantNewlyGrantable("third")
	c.wantIn(third)
}

func TestWhoLeavesGivesUpJustWhatItLeaves(t *testing.T) {
	c := newCrowdOf(t, "first", "second")
	c.wantClaim(true, "first", "a", "nodes")
	c.wantClaim(true, "first", "b", "storage")
	c.domains.Leave("first", "a")
	c.wantClaim(true, "second", "s", "nodes")
	c.wantClaim(false, "second", "t", "storage")
	c.domains.Leave("first", "")
	c.wantClaim(true, "second", "t", "storage")
}

func TestStepsOfOneActionDoNotWaitForEachOther(t *testing.T) {
	c := newCrowdOf(t, "first", "second")
	c.wantClaim(true, "second", "s", "storage")
	for range 11 { // by when the one is as urgent as a person's
		c.wantClaim(false, "first", "a", "storage")
		c.now = c.now.Add(time.Minute)
	}
	c.wantClaim(false, "first", "b", "storage")
	c.domains.Leave("second", "")
	c.wantNewlyGrantable("first")
	c.wantClaim(true, "first", "b", "storage")
	c.wantClaim(true, "first", "a", "storage")
}

func TestWhoLeavesGivesUpJustThatPlace(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "second", "s", "nodes", "storage")
	c.wantClaim(false, "first", "a", "nodes")
	c.wantClaim(false, "first", "b", "storage")
	c.domains.Leave("first", "a")
	c.domains.Leave("second", "")
	c.wantClaim(true, "third", "s", "nodes")
	c.wantClaim(false, "third", "t", "storage")
}

func TestWhoHasEndedHasNothingAndWaitsForNothing(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third", "fourth")
	c.wantClaim(true, "first", "s", "storage")
	c.wantClaim(false, "second", "s", "storage")
	c.wantClaim(false, "third", "s", "storage")
	delete(c.s.Actions, "first")
	delete(c.s.Actions, "second")
	c.wantNewlyGrantable("third")
	c.wantClaim(true, "fourth", "s", "nodes")
	c.wantClaim(true, "third", "s", "storage")
}

func TestWhoAsksNoMoreIsNotCalledAndStandsInNobodysWay(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "first", "s", "storage")
	c.wantClaim(false, "second", "s", "storage")
	c.now = c.now.Add(claimTimeout)
	c.wantClaim(false, "third", "s", "storage")
	c.now = c.now.Add(time.Second)
	c.domains.Leave("first", "")
	c.wantNewlyGrantable("third")
}

func TestWhoHasWaitedLongComesBeforeAnEarlierOneThatHasNot(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "second", "s", "storage")
	for range priorityAfter / time.Minute {
		c.wantClaim(false, "third", "s", "storage")
		c.now = c.now.Add(time.Minute)
	}
	c.wantClaim(false, "first", "s", "storage")
	c.domains.Leave("second", "")
	c.wantNewlyGrantable("third")
	c.wantClaim(true, "third", "s", "storage")
}

func TestWhoIsCalledTooLateIsCalledAgain(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "third", "s", "storage")
	c.wantClaim(false, "second", "s", "storage")
	c.domains.Leave("third", "")
	c.wantNewlyGrantable("second")
	c.wantClaim(true, "first", "s", "storage")
	c.wantClaim(false, "second", "s", "storage")
	c.wantNewlyGrantable()
	c.domains.Leave("first", "")
	c.wantNewlyGrantable("second")
}

func TestWhoAsksAnewWaitsForWhatItAsksNow(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "first", "s", "storage")
	c.wantClaim(false, "second", "s", "storage", "nodes")
	c.wantClaim(false, "third", "s", "nodes")
	c.wantClaim(false, "second", "s", "storage")
	c.wantClaim(true, "third", "s", "nodes")
}

func TestTheSameIsToldAndCalledEachTime(t *testing.T) {
	for range 20 { // maps have no order
		c := newCrowdOf(t, "first", "second", "third", "fourth")
		c.wantClaim(true, "second", "s", "storage")
		c.wantClaim(true, "first", "s", "nodes")
		taken, _ := c.domains.Take(c.s, c.now, Claim{"fourth", []string{"s"}, []string{"storage", "nodes"}})
		if want := (Taken{By: "first", Step: "s", Domain: "nodes"}); taken != want {
			t.Fatalf("told of %+v, want %+v", taken, want)
		}
		c.domains.Leave("fourth", "")
		c.wantClaim(false, "fourth", "s", "storage")
		c.wantClaim(false, "third", "s", "nodes")
		c.domains.Leave("first", "")
		c.domains.Leave("second", "")
		c.wantNewlyGrantable("fourth", "third")
	}
}

// TestWhoWaitsTwiceIsNotCalledPastWhoComesBetween: one that has waited long comes first
// with that step alone.
func TestWhoWaitsTwiceIsNotCalledPastWhoComesBetween(t *testing.T) {
	c := newCrowdOf(t, "first", "second", "third")
	c.wantClaim(true, "third", "s", "storage")
	for range priorityAfter / time.Minute {
		c.wantClaim(false, "second", "a", "storage")
		c.now = c.now.Add(time.Minute)
	}
	c.domains.Leave("third", "")
	c.wantNewlyGrantable("second")
	c.wantClaim(false, "first", "s", "storage")
	c.wantClaim(false, "second", "b", "storage")
	c.wantClaim(false, "second", "c", "storage")
	c.wantNewlyGrantable()
}
