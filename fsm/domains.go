package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Domains lets steps that change the same take turns. A step takes all its domains at
// once and has them until its end, or until its proof where its plan says so; an action
// with no such step has none, whatever else it does. So no step that has a domain waits
// for another action, and no two actions can wait for each other. A step that could
// begin beside one of its own action waits for its turn all the same: else an action of
// many steps would let nobody in before its last one.
//
// Who has what is in the state, since that a step began is on disk. Domains itself
// holds only what lies before: who was let in and has not begun yet, and who waits. A
// restart may forget both. The zero Domains is ready for use; only the goroutine that
// owns the state may use it.
type Domains struct {
	let     map[claimKey]Claim
	waiting map[claimKey]*waitingClaim
	// jumped is when the clock jumped last, as far as the times of who waits know it.
	jumped time.Time
}

// Claim is what an action asks for before steps of it may start.
type Claim struct {
	// Action is the id of an open action.
	Action string
	// Steps may start together, and take these domains.
	Steps   []string
	Domains []string
}

// claimKey: steps that start together ask together, so the first of them names them.
type claimKey struct{ action, step string }

func (c Claim) key() claimKey { return claimKey{c.Action, c.Steps[0]} }

type waitingClaim struct {
	Claim
	since, asked time.Time
	// called is set once the action was told that its turn has come.
	called bool
}

const (
	// placeKept is how long who waits keeps his place without asking again; an action
	// asks at least every half minute.
	placeKept = 2 * time.Minute
	// waitedLong is after which time the action that EKCO began by itself is as good
	// as one of a person: else persons could keep it waiting for ever.
	waitedLong = 10 * time.Minute
)

// Taken says who has, or gets before, what a claim asks for.
type Taken struct {
	// By is the action, Step the step that has the domain, "" if By waits for it too.
	By, Step string
	Domain   string
	// Rests is why the step does not go on by itself, or "".
	Rests string
}

// Reason says so for people.
func (t Taken) Reason() string {
	if t.By == "" {
		return "the action is not open, as far as EKCO knows, so it cannot be told whether another changes the same"
	}
	if t.Step == "" {
		return fmt.Sprintf("%s comes first: it waits to change %s too; this goes on after it", t.By, words(t.Domain))
	}
	if t.Rests != "" {
		return fmt.Sprintf("%s changes %s (step %s) and does not continue automatically: %s; this goes on when that step has ended",
			t.By, words(t.Domain), t.Step, t.Rests)
	}
	return fmt.Sprintf("%s changes %s (step %s); this goes on when that step has ended", t.By, words(t.Domain), t.Step)
}

// rests says why an open action does not go on by itself, or returns "".
func (s *State) rests(rec *journal.ActionRecord) string {
	switch {
	case rec.Unreadable != "":
		return UnreadableReason(rec)
	case s.Kind(rec.Kind) == nil:
		return fmt.Sprintf("this EKCO does not know actions of kind %q; run the version that began it", rec.Kind)
	}
	return ""
}

func words(domain string) string {
	if name, is := journal.HostOf(domain); is {
		return "host " + name
	}
	return "the " + strings.ReplaceAll(domain, "-", " ")
}

// Take lets the claim have its domains, or says what stands in its way and keeps it a
// place. Whoever was let in must start the steps, of which [Domains.Began] is told, or
// [Domains.Leave].
func (d *Domains) Take(s *State, now time.Time, claim Claim) (taken Taken, ok bool) {
	if len(claim.Domains) == 0 || len(claim.Steps) == 0 {
		return Taken{}, true
	}
	rec := s.Actions[claim.Action]
	if rec == nil {
		return Taken{}, false // nobody passes for not being known
	}
	d.tidy(s, now)
	taken, free := d.free(s, now, claim)
	if free && !has(retained(rec, now, claim.Steps), claim.Domains) {
		taken, free = d.isNext(s, now, claim)
	}
	if !free {
		d.wait(now, claim)
		return taken, false
	}
	delete(d.waiting, claim.key())
	if d.let == nil {
		d.let = map[claimKey]Claim{}
	}
	d.let[claim.key()] = claim
	return Taken{}, true
}

// Leave forgets what steps of an action asked for, or were let do; all that the action
// did with step "".
func (d *Domains) Leave(action, step string) {
	for key := range d.let {
		if key.action == action && (step == "" || key.step == step) {
			delete(d.let, key)
		}
	}
	for key := range d.waiting {
		if key.action == action && (step == "" || key.step == step) {
			delete(d.waiting, key)
		}
	}
}

// Called returns the actions that would be let in if they asked now, each once for
// every time that it asked.
func (d *Domains) Called(s *State, now time.Time) []string {
	if len(d.waiting) == 0 {
		return nil
	}
	d.tidy(s, now)
	var called []string
	taken, before := d.taken(s, now), map[string]ahead{}
	for _, w := range d.inOrder(s, now) {
		free := !slices.ContainsFunc(w.Domains, func(domain string) bool { return taken[domain].of(w.Action) || before[domain].of(w.Action) })
		if free && !w.called {
			w.called = true
			called = append(called, w.Action)
		}
		for _, domain := range w.Domains {
			before[domain] = before[domain].and(w.Action)
		}
	}
	slices.Sort(called)
	return slices.Compact(called)
}

// ahead are the actions that come before in a domain: one of them, and whether there
// are others.
type ahead struct {
	one    string
	others bool
}

func (a ahead) and(action string) ahead {
	return ahead{one: cmp.Or(a.one, action), others: a.others || (a.one != "" && a.one != action)}
}

// of reports whether another than this action is among them.
func (a ahead) of(action string) bool { return a.others || (a.one != "" && a.one != action) }

// taken returns by domain who has it. It is for those who ask about many claims.
func (d *Domains) taken(s *State, now time.Time) map[string]ahead {
	taken := map[string]ahead{}
	for _, rec := range s.Actions {
		for domain := range Occupied(rec, now) {
			taken[domain] = taken[domain].and(rec.ID)
		}
	}
	for _, let := range d.let {
		for _, domain := range let.Domains {
			taken[domain] = taken[domain].and(let.Action)
		}
	}
	return taken
}

// inOrder returns who waits, who comes first before the others.
func (d *Domains) inOrder(s *State, now time.Time) []*waitingClaim {
	return slices.SortedFunc(maps.Values(d.waiting), func(a, b *waitingClaim) int {
		return cmp.Or(s.inTurn(now, a.Action, a.since, b.Action, b.since), cmp.Compare(a.Steps[0], b.Steps[0]))
	})
}

// Began notes that the start of a step is on record: from then on the state says what
// the step has.
func (d *Domains) Began(action, step string) { delete(d.let, claimKey{action, step}) }

// tidy forgets who has ended, or no longer asks.
func (d *Domains) tidy(s *State, now time.Time) {
	d.keepTime(s)
	for key := range d.let {
		if s.Actions[key.action] == nil {
			delete(d.let, key)
		}
	}
	for key, w := range d.waiting {
		if s.Actions[key.action] == nil || now.Sub(w.asked) > placeKept {
			delete(d.waiting, key)
		}
	}
}

// keepTime moves the times of who waits as a jump of the clock moved those of the state:
// nobody has waited for longer or shorter because a clock was set.
func (d *Domains) keepTime(s *State) {
	if s.Clock.JumpedAt.Equal(d.jumped) {
		return
	}
	d.jumped = s.Clock.JumpedAt
	m := later(time.Duration(s.Clock.Jump))
	for _, w := range d.waiting {
		m.to(&w.since)
		m.to(&w.asked)
	}
}

// free reports whether no other action has one of the domains.
func (d *Domains) free(s *State, now time.Time, claim Claim) (Taken, bool) {
	var taken []Taken
	for _, rec := range s.Actions {
		if rec.ID == claim.Action {
			continue
		}
		occupied := Occupied(rec, now)
		for _, domain := range claim.Domains {
			if step := occupied[domain]; step != "" {
				taken = append(taken, Taken{By: rec.ID, Step: step, Domain: domain, Rests: s.rests(rec)})
			}
		}
	}
	for _, let := range d.let {
		if domain := shared(let.Domains, claim.Domains); domain != "" && let.Action != claim.Action {
			taken = append(taken, Taken{By: let.Action, Step: let.Steps[0], Domain: domain})
		}
	}
	return first(taken)
}

// isNext reports whether nobody waits who comes first.
func (d *Domains) isNext(s *State, now time.Time, claim Claim) (Taken, bool) {
	since := now
	if own := d.waiting[claim.key()]; own != nil {
		since = own.since
	}
	var before []Taken
	for _, w := range d.waiting {
		domain := shared(w.Domains, claim.Domains)
		if domain != "" && w.Action != claim.Action && s.comesFirst(now, w.Action, w.since, claim.Action, since) {
			before = append(before, Taken{By: w.Action, Domain: domain})
		}
	}
	return first(before)
}

// comesFirst reports whether of two actions that wait the one comes before the other.
func (s *State) comesFirst(now time.Time, one string, since time.Time, other string, otherSince time.Time) bool {
	return s.inTurn(now, one, since, other, otherSince) < 0
}

// inTurn orders two open actions that wait: persons, and who has waited as long as one
// should, then by their requests.
func (s *State) inTurn(now time.Time, one string, since time.Time, other string, otherSince time.Time) int {
	a, b := s.Actions[one], s.Actions[other]
	if a == nil || b == nil {
		return 0
	}
	urgent := func(rec *journal.ActionRecord, since time.Time) bool {
		return rec.ByPerson() || now.Sub(since) >= waitedLong
	}
	return cmp.Or(firstIf(urgent(a, since), urgent(b, otherSince)), RequestOrder(a, b))
}

func (d *Domains) wait(now time.Time, claim Claim) {
	if d.waiting == nil {
		d.waiting = map[claimKey]*waitingClaim{}
	}
	w := d.waiting[claim.key()]
	if w == nil {
		w = &waitingClaim{since: now}
		d.waiting[claim.key()] = w
	}
	w.Claim, w.asked, w.called = claim, now, false
}

// first returns what to tell of, the same each time.
func first(taken []Taken) (Taken, bool) {
	if len(taken) == 0 {
		return Taken{}, true
	}
	return slices.MinFunc(taken, func(a, b Taken) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Step, b.Step))
	}), false
}

// shared returns the first of the domains that both have, or "".
func shared(a, b []string) string {
	for _, domain := range a {
		if slices.Contains(b, domain) {
			return domain
		}
	}
	return ""
}

// has reports whether all of the domains are occupied.
func has(occupied map[string]string, domains []string) bool {
	return !slices.ContainsFunc(domains, func(domain string) bool { return occupied[domain] == "" })
}
