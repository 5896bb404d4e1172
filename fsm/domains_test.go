package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/journal"
)

// turn is what one action of a test has to do, step after step.
type turn struct {
	rec   *journal.ActionRecord
	steps []*turnStep
	// asks is when it asks next, waits since when it was told to wait.
	asks, waits time.Time
}

type turnStep struct {
	journal.PlannedStep
	takes time.Duration
	fails int
	ends  time.Time
}

// crowd is actions that take turns.
type crowd struct {
	t       fataler
	s       *State
	domains Domains
	now     time.Time
	turns   []*turn
	// restarts is how often EKCO was started anew.
	restarts int
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

var domainsStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newCrowd(t fataler) *crowd { return &crowd{t: t, s: NewState(lamps()), now: domainsStart} }

// add adds an action that was requested as many seconds before the others begin.
func (c *crowd) add(id string, person bool, before int, steps ...*turnStep) *turn {
	rec := &journal.ActionRecord{ID: id, Kind: lampKind, RequestedAt: c.now.Add(-time.Duration(before) * time.Second), Planned: true}
	rec.Request.Manual = person
	c.s.Actions[id] = rec
	return c.beside(rec, steps...)
}

// beside adds steps to the action which run beside those that it has.
func (c *crowd) beside(rec *journal.ActionRecord, steps ...*turnStep) *turn {
	for _, step := range steps {
		step.ID = fmt.Sprintf("step-%d", len(rec.Plan.Steps))
		rec.Plan.Steps = append(rec.Plan.Steps, step.PlannedStep)
	}
	next := &turn{rec: rec, steps: steps}
	c.turns = append(c.turns, next)
	return next
}

func takes(d time.Duration, domains ...string) *turnStep {
	return &turnStep{PlannedStep: journal.PlannedStep{Domains: domains, Timeout: journal.Duration(time.Minute)}, takes: d}
}

func (c *crowd) fold(x *turn, p journal.Payload) {
	c.t.Helper()
	if err := x.rec.Fold(journal.Event{Time: c.now}, p); err != nil {
		c.t.Fatalf("%s: %v", x.rec.ID, err)
	}
}

// ask has the action ask for its next step, and begin it if it is let in.
func (c *crowd) ask(x *turn) (Taken, bool) {
	c.t.Helper()
	step := x.steps[0]
	taken, ok := c.domains.Take(c.s, c.now, Claim{Action: x.rec.ID, Steps: []string{step.ID}, Domains: step.Domains})
	if !ok {
		if x.waits.IsZero() {
			x.waits = c.now
		}
		return taken, false
	}
	c.fold(x, &journal.StepStarted{Step: step.ID, Attempt: 1})
	c.domains.Began(x.rec.ID, step.ID)
	step.ends, x.waits = c.now.Add(step.takes), time.Time{}
	return taken, true
}

// end ends the step that the action has begun.
func (c *crowd) end(x *turn) {
	c.t.Helper()
	step := x.steps[0]
	step.ends = time.Time{}
	if step.fails > 0 {
		step.fails--
		c.fold(x, &journal.StepFailed{Step: step.ID, Attempt: 1})
		return
	}
	c.fold(x, &journal.StepDone{Step: step.ID, Attempt: 1})
	if x.steps = x.steps[1:]; len(x.steps) > 0 {
		return
	}
	c.turns = slices.DeleteFunc(c.turns, func(other *turn) bool { return other == x })
	if !slices.ContainsFunc(c.turns, func(other *turn) bool { return other.rec == x.rec }) {
		delete(c.s.Actions, x.rec.ID)
	}
}

// apart fails the test if two actions have one domain.
func (c *crowd) apart() {
	c.t.Helper()
	owner := map[string]string{}
	for _, x := range c.turns {
		for domain := range Occupied(x.rec, c.now) {
			if other := owner[domain]; other != "" && other != x.rec.ID {
				c.t.Fatalf("%s and %s both have %s", other, x.rec.ID, domain)
			}
			owner[domain] = x.rec.ID
		}
	}
}

// overtaken fails the test if one that was let in has overtaken who waited before it.
func (c *crowd) overtaken(in *turn, domains []string, held bool) {
	c.t.Helper()
	for _, other := range c.turns {
		if other.rec == in.rec || other.waits.IsZero() || held || firstShared(other.steps[0].Domains, domains) == "" {
			continue
		}
		if c.s.hasPriority(c.now, other.rec.ID, other.waits, in.rec.ID, c.now) {
			c.t.Fatalf("%s was let in before %s, which waits since %s and comes first", in.rec.ID, other.rec.ID, other.waits)
		}
	}
}

func TestNoSetOfActionsWaitsForItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t)
		for i := range rapid.IntRange(2, 6).Draw(t, "actions") {
			x := c.add(fmt.Sprintf("action-%d", i), rapid.Bool().Draw(t, "person"), rapid.IntRange(0, 3).Draw(t, "before"), someSteps(t)...)
			if rapid.Bool().Draw(t, "beside") {
				c.beside(x.rec, someSteps(t)...)
			}
		}
		end := c.now.Add(2 * time.Hour)
		for len(c.turns) > 0 {
			if !c.now.Before(end) {
				t.Fatalf("%d actions are not done after two hours, the first is %s", len(c.turns), c.turns[0].rec.ID)
			}
			c.tick(t)
		}
	})
}

func someSteps(t *rapid.T) (steps []*turnStep) {
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		step := takes(time.Duration(rapid.IntRange(1, 8).Draw(t, "takes"))*time.Second,
			rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "domains")...)
		step.fails = rapid.IntRange(0, 2).Draw(t, "fails")
		step.KeepsDomains = rapid.Bool().Draw(t, "keeps")
		step.Timeout = journal.Duration(rapid.IntRange(1, 30).Draw(t, "timeout")) * journal.Duration(time.Second)
		steps = append(steps, step)
	}
	return steps
}

// tick lets a second pass, in which EKCO may be started anew.
func (c *crowd) tick(t *rapid.T) {
	c.now = c.now.Add(time.Second)
	if c.restarts < 2 && rapid.IntRange(0, 12).Draw(t, "restart") == 0 {
		c.restarts++ // few, since one can end what would wait for ever
		c.domains = Domains{}
		for _, x := range c.turns {
			x.waits, x.asks, x.steps[0].ends = time.Time{}, c.now, time.Time{} // what was under way is left open
		}
	}
	for _, x := range slices.Clone(c.turns) {
		if ends := x.steps[0].ends; !ends.IsZero() && !c.now.Before(ends) {
			c.end(x)
		}
	}
	grantable := c.domains.NewlyGrantable(c.s, c.now)
	for _, x := range rapid.Permutation(slices.Clone(c.turns)).Draw(t, "order") {
		step := x.steps[0]
		if !step.ends.IsZero() || (c.now.Before(x.asks) && !slices.Contains(grantable, x.rec.ID)) {
			continue
		}
		x.asks = c.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "asks again")) * time.Second)
		held := len(step.Domains) > 0 && holdsAll(ownLocks(x.rec, c.now, []string{step.ID}), step.Domains)
		if _, in := c.ask(x); in {
			c.overtaken(x, step.Domains, held)
		}
		c.apart()
	}
}

func (c *crowd) wantIn(x *turn) {
	c.t.Helper()
	if taken, in := c.ask(x); !in {
		c.t.Fatalf("%s has to wait: %s", x.rec.ID, taken.Reason())
	}
}

func (c *crowd) wantOut(x *turn, reason string) {
	c.t.Helper()
	if taken, in := c.ask(x); in || taken.Reason() != reason {
		c.t.Fatalf("%s: let in %t, %q, want %q", x.rec.ID, in, taken.Reason(), reason)
	}
}

func TestAStepTakesAllItsDomainsOrNone(t *testing.T) {
	c := newCrowd(t)
	move := c.add("move-minio", false, 3, takes(time.Minute, "storage"))
	purge := c.add("purge-w1", false, 2, takes(time.Minute, "nodes", "storage"))
	join := c.add("join-w2", true, 1, takes(time.Minute, "nodes"))
	c.wantIn(move)
	c.wantOut(purge, "move-minio changes the storage (step step-0); this continues when that step has ended")
	c.wantIn(join) // a person, whom nobody has let in before
	c.end(move)
	c.wantOut(purge, "join-w2 changes the nodes (step step-0); this continues when that step has ended")
	c.end(join)
	c.wantIn(purge)
}

func TestWhoWaitsIsNotOvertakenByALaterOne(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	second := c.add("second", false, 8, takes(time.Minute, "storage", "nodes"))
	third := c.add("third", false, 7, takes(time.Minute, "nodes"))
	c.wantIn(first)
	c.wantOut(second, "first changes the storage (step step-0); this continues when that step has ended")
	c.wantOut(third, "queued behind second, which also waits to change the nodes")
	c.domains.Leave("second", "") // something else holds it now
	c.wantIn(third)
}

func TestAPersonComesFirstAndWhoHasWaitedLongAsWell(t *testing.T) {
	c := newCrowd(t)
	busy := c.add("busy", false, 9, takes(time.Minute, "storage"))
	old := c.add("old", false, 8, takes(time.Minute, "storage"))
	person := c.add("person", true, 0, takes(time.Minute, "storage"))
	c.wantIn(busy)
	c.wantOut(old, "busy changes the storage (step step-0); this continues when that step has ended")
	c.wantOut(person, "busy changes the storage (step step-0); this continues when that step has ended")
	c.end(busy)
	for range priorityAfter / time.Minute {
		c.wantOut(old, "queued behind person, which also waits to change the storage")
		c.now = c.now.Add(time.Minute)
		// That person was let in, and there is the next one.
		c.domains.enqueue(c.now, Claim{"person", []string{"step-0"}, []string{"storage"}})
	}
	c.wantIn(old)
}

func TestAStepThatKeepsItsDomainsHasThemBetweenItsTriesWithinItsTimeout(t *testing.T) {
	c := newCrowd(t)
	cut := takes(time.Second, "storage")
	cut.KeepsDomains, cut.fails = true, 9
	cutOver := c.add("cut-over", false, 9, cut)
	purge := c.add("purge-w1", false, 8, takes(time.Minute, "storage"))
	c.wantIn(cutOver)
	c.now = c.now.Add(time.Second)
	c.end(cutOver)
	const has = "cut-over changes the storage (step step-0); this continues when that step has ended"
	c.wantOut(purge, has)
	c.wantIn(cutOver) // although somebody waits
	c.end(cutOver)
	c.now = c.now.Add(58 * time.Second)
	c.wantOut(purge, has)
	c.now = c.now.Add(time.Second)
	c.wantIn(purge)
}

func TestAnActionOfManyStepsSideBySideLetsOthersInBetween(t *testing.T) {
	c := newCrowd(t)
	many := c.add("many", false, 9, takes(time.Minute, "storage"), takes(time.Minute, "storage"))
	person := c.add("person", true, 0, takes(time.Minute, "storage"))
	c.wantIn(many)
	c.wantOut(person, "many changes the storage (step step-0); this continues when that step has ended")
	if _, in := c.domains.Take(c.s, c.now, Claim{"many", []string{"step-1"}, []string{"storage"}}); in {
		t.Error("its next step began while the first one was under way, and a person waits")
	}
	c.end(many)
	c.wantIn(person)
	c.end(person)
	c.wantIn(many)
}

func TestAStepThatFailsOtherwiseLetsOthersIn(t *testing.T) {
	c := newCrowd(t)
	step := takes(time.Second, "storage")
	step.fails = 1
	failing := c.add("failing", false, 9, step)
	purge := c.add("purge-w1", false, 8, takes(time.Minute, "storage"))
	c.wantIn(failing)
	c.end(failing)
	c.wantIn(purge)
}

func TestWhoWasLetInHasItsDomainsBeforeTheStartIsOnRecord(t *testing.T) {
	c := newCrowd(t)
	c.add("first", false, 9, takes(time.Minute, "storage"))
	second := c.add("second", false, 8, takes(time.Minute, "storage"))
	if _, in := c.domains.Take(c.s, c.now, Claim{"first", []string{"step-0"}, []string{"storage"}}); !in {
		t.Fatal("it has to wait")
	}
	c.wantOut(second, "first changes the storage (step step-0); this continues when that step has ended")
	c.domains.Leave("first", "step-0")
	c.wantIn(second)
}

func TestAnOpenStepHasItsDomainsAfterARestartAndADryRunHasNone(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	second := c.add("second", false, 8, takes(time.Minute, "storage"))
	c.wantIn(first)
	c.domains = Domains{}
	c.wantOut(second, "first changes the storage (step step-0); this continues when that step has ended")
	first.rec.Request.DryRun = true
	c.wantIn(second)
}

func TestGrantableClaimIsAnnouncedOnceAndExpires(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	second := c.add("second", false, 8, takes(time.Minute, "storage"))
	third := c.add("third", false, 7, takes(time.Minute, "storage"))
	c.wantIn(first)
	c.ask(second)
	c.ask(third)
	if grantable := c.domains.NewlyGrantable(c.s, c.now); len(grantable) != 0 {
		t.Errorf("newly grantable are %q while the domain is taken", grantable)
	}
	c.end(first)
	if grantable := c.domains.NewlyGrantable(c.s, c.now); !slices.Equal(grantable, []string{"second"}) {
		t.Errorf("newly grantable are %q, want the second alone", grantable)
	}
	if grantable := c.domains.NewlyGrantable(c.s, c.now); len(grantable) != 0 {
		t.Errorf("announced again: %q", grantable)
	}
	c.now = c.now.Add(claimTimeout)
	c.wantOut(third, "queued behind second, which also waits to change the storage")
	c.now = c.now.Add(time.Second)
	c.wantIn(third)
}

func TestAStepThatWasLeftOpenGoesOnThoughAPersonWaitsForIt(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	person := c.add("person", true, 8, takes(time.Minute, "storage"))
	c.wantIn(first)
	c.domains = Domains{} // a restart
	c.wantOut(person, "first changes the storage (step step-0); this continues when that step has ended")
	c.wantIn(first)
	if _, in := c.domains.Take(c.s, c.now, Claim{"first", []string{"step-0", "step-1"}, []string{"storage"}}); !in {
		t.Error("it has to wait because another step is to begin beside it")
	}
}

func TestWhoTurnsBackGoesPastWhoWaitsForWhatItLeftOpen(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	person := c.add("person", true, 8, takes(time.Minute, "storage"))
	c.wantIn(first)
	c.domains = Domains{} // a restart
	c.wantOut(person, "first changes the storage (step step-0); this continues when that step has ended")
	c.fold(first, &journal.ActionCancelling{Reason: "r"})
	if _, in := c.domains.Take(c.s, c.now, Claim{"first", []string{"undo"}, []string{"storage"}}); !in {
		t.Error("it waits for a person, who waits for it")
	}
}

func TestWhoWaitsForAnActionThatNobodyRunsIsToldSo(t *testing.T) {
	c := newCrowd(t)
	first := c.add("first", false, 9, takes(time.Minute, "storage"))
	second := c.add("second", false, 8, takes(time.Minute, "storage"))
	c.wantIn(first)
	first.rec.Unreadable = "event 7"
	const rests = "first changes the storage (step step-0) and does not continue automatically: %s; this continues when that step has ended"
	c.wantOut(second, fmt.Sprintf(rests, "this EKCO does not understand all events of first (event 7); run the version that wrote them"))
	first.rec.Unreadable, first.rec.Kind = "", "move-minio"
	c.wantOut(second, fmt.Sprintf(rests, `this EKCO does not know actions of kind "move-minio"; run the version that began the action`))
}

func TestWhoIsCalledIsWhoWouldBeLetIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t)
		domains := func() []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "domains")
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "actions") {
			x := c.add(fmt.Sprintf("action-%d", i), rapid.Bool().Draw(t, "person"), rapid.IntRange(0, 2).Draw(t, "before"), takes(time.Minute, domains()...))
			if rapid.Bool().Draw(t, "begun") {
				c.ask(x)
			}
			for step := range rapid.IntRange(0, 2).Draw(t, "waits") {
				c.now = c.now.Add(time.Duration(rapid.IntRange(0, 70).Draw(t, "later")) * time.Second)
				c.domains.enqueue(c.now, Claim{x.rec.ID, []string{fmt.Sprint("further-", step)}, domains()})
			}
		}
		var want []string
		c.domains.dropStale(c.s, c.now)
		for _, w := range c.domains.waiting {
			_, free := c.domains.isFree(c.s, c.now, w.Claim)
			if _, next := c.domains.isNext(c.s, c.now, w.Claim); free && next {
				want = append(want, w.Action)
			}
		}
		slices.Sort(want)
		if got := c.domains.NewlyGrantable(c.s, c.now); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("newly grantable are %q, want %q", got, want)
		}
	})
}

func TestEachActionIsLookedAtOnceHoweverManyWait(t *testing.T) {
	c := newCrowd(t)
	for i := range 200 {
		other := fmt.Sprintf("domain-%d", i)
		c.wantIn(c.add(fmt.Sprintf("busy-%d", i), false, 0, takes(time.Minute, other)))
		c.domains.enqueue(c.now, Claim{c.add(fmt.Sprintf("waits-%d", i), false, 0, takes(time.Minute, other)).rec.ID, []string{"step-0"}, []string{other}})
	}
	if allocated := testing.AllocsPerRun(1, func() { c.domains.NewlyGrantable(c.s, c.now) }); allocated > 5_000 {
		t.Errorf("it takes %.0f allocations to see that no claim is grantable, and 400 actions are open", allocated)
	}
}

func TestAnActionThatIsNotOpenIsNotLetIn(t *testing.T) {
	c := newCrowd(t)
	taken, in := c.domains.Take(c.s, c.now, Claim{"unknown", []string{"step-0"}, []string{"storage"}})
	if in || !strings.Contains(taken.Reason(), "not open in the journal") {
		t.Errorf("let in %t, %q", in, taken.Reason())
	}
}

func TestWhoWaitsHasNotWaitedLongerBecauseTheClockWasSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		c := newCrowd(t)
		busy := c.add("busy", false, 9, takes(time.Minute, "storage"))
		old := c.add("old", false, 8, takes(time.Minute, "storage"))
		person := c.add("person", true, 0, takes(time.Minute, "storage"))
		c.wantIn(busy)
		c.wantOut(old, "busy changes the storage (step step-0); this continues when that step has ended")
		c.now = c.now.Add(time.Minute + by)
		c.s.applyJump(journal.Event{Time: c.now}, by)
		c.wantOut(person, "busy changes the storage (step step-0); this continues when that step has ended")
		c.end(busy)
		for range priorityAfter/time.Minute - 1 {
			c.wantOut(old, "queued behind person, which also waits to change the storage")
			c.now = c.now.Add(time.Minute)
			c.domains.enqueue(c.now, Claim{"person", []string{"step-0"}, []string{"storage"}})
		}
		c.wantIn(old)
	}
}

func TestAPlanFromBeforeThereWereDomainsTakesThoseOfItsKind(t *testing.T) {
	old := journal.Plan{Steps: []journal.PlannedStep{{ID: "out"}, {ID: "in"}}, Undo: []journal.PlannedStep{{ID: "back"}}}
	s := NewState(lamps())
	s.Actions["a"] = &journal.ActionRecord{ID: "a", Kind: lampKind, Status: Requested}
	s.cache.kinds[lampKind] = &ActionKind{Name: lampKind, Domains: []string{"storage"}}
	s.foldAction(journal.Event{Action: "a", Seq: 2}, &journal.ActionPlanned{Plan: old})
	s.foldAdopted(journal.Event{Action: "b", Seq: 3}, &journal.ActionAdopted{Record: journal.ActionRecord{ID: "b", Kind: lampKind, Plan: old}, JournalID: "other"})
	for _, id := range []string{"a", "b"} {
		for _, step := range slices.Concat(s.Actions[id].Plan.Steps, s.Actions[id].Plan.Undo) {
			if !slices.Equal(step.Domains, []string{"storage"}) {
				t.Errorf("%s: step %s takes %q", id, step.ID, step.Domains)
			}
		}
	}
	if old.NamesDomains() {
		t.Error("the event's own plan was changed")
	}
	named := journal.Plan{Steps: []journal.PlannedStep{{ID: "out", Domains: []string{"nodes"}}, {ID: "wait"}}}
	s.Actions["c"] = &journal.ActionRecord{ID: "c", Kind: lampKind, Status: Requested}
	s.foldAction(journal.Event{Action: "c", Seq: 4}, &journal.ActionPlanned{Plan: named})
	if got := s.Actions["c"].Plan.Steps[1].Domains; len(got) != 0 {
		t.Errorf("a step that takes none takes %q", got)
	}
}
