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

// Domains manages locks, so that steps that change the same part of the cluster run one after the other. Each lock is
// for one domain. A step takes all its locks at once and keeps them until it ends, or until it is verified if its plan
// says so. Between steps an action has no locks. So a step that has a lock never waits for another action, and actions
// cannot deadlock. Parallel steps of one action also take turns with other actions: otherwise an action with many steps
// would keep the lock until its last step.
//
// The locks of started steps are in [State], because the start of a step is on disk. Domains has only the claims before
// that: granted claims of steps whose start is not recorded yet, and waiting claims. A restart may lose both. The zero
// Domains is ready for use. Only the goroutine that owns the state may use it.
type Domains struct {
	granted map[claimKey]Claim
	waiting map[claimKey]*waitingClaim
	// jumped is the last clock jump to which the times in waiting were adapted.
	jumped time.Time
}

// Claim is a request for the locks that steps of an action need before they start.
type Claim struct {
	// Action is the id of an open action.
	Action string
	// Steps are the steps that start together. They need the locks in Domains.
	Steps   []string
	Domains []string
}

// claimKey identifies a claim by its first step: steps that start together share a claim.
type claimKey struct{ action, step string }

func (c Claim) key() claimKey { return claimKey{c.Action, c.Steps[0]} }

// waitingClaim is a claim in the queue. since is when it was first made, and asked is when it was last repeated.
type waitingClaim struct {
	Claim
	since, asked time.Time
	// isAnnounced is set once [Domains.NewlyGrantable] has returned the action.
	isAnnounced bool
}

const (
	// claimTimeout is how long a claim stays in the queue if it is not repeated. An action repeats it about every 30 s.
	claimTimeout = 2 * time.Minute
	// priorityAfter is how long an automatic action waits until it has the same priority as a person's action.
	// Otherwise persons' actions could delay it without limit.
	priorityAfter = 10 * time.Minute
)

// Taken says which other action has the lock that a claim needs, or comes before the claim.
type Taken struct {
	// By is the id of the other action. Step is that action's step with the lock, or "" if that action also waits for
	// the lock.
	By, Step string
	Domain   string
	// Stuck says why Step does not continue automatically, or is "".
	Stuck string
}

// Reason returns the message for people.
func (t Taken) Reason() string {
	if t.By == "" {
		return "the action is not open in the journal, so EKCO cannot check whether another action changes the same part of the cluster"
	}
	if t.Step == "" {
		return fmt.Sprintf("queued behind %s, which also waits to change %s", t.By, domainText(t.Domain))
	}
	if t.Stuck != "" {
		return fmt.Sprintf("%s changes %s (step %s) and does not continue automatically: %s; this continues when that step has ended",
			t.By, domainText(t.Domain), t.Step, t.Stuck)
	}
	return fmt.Sprintf("%s changes %s (step %s); this continues when that step has ended", t.By, domainText(t.Domain), t.Step)
}

// stuckReason returns why an open action does not continue automatically, or "".
func (s *State) stuckReason(rec *journal.ActionRecord) string {
	switch {
	case rec.Unreadable != "":
		return UnreadableReason(rec)
	case s.Kind(rec.Kind) == nil:
		return fmt.Sprintf("this EKCO does not know actions of kind %q; run the version that began the action", rec.Kind)
	}
	return ""
}

func domainText(domain string) string {
	if name, is := journal.HostOf(domain); is {
		return "host " + name
	}
	return "the " + strings.ReplaceAll(domain, "-", " ")
}

// Take grants the claim (ok is true), or puts the claim into the queue and returns the action that prevents the grant.
// After a grant, the caller must start the steps and call [Domains.Began], or call [Domains.Leave].
func (d *Domains) Take(s *State, now time.Time, claim Claim) (taken Taken, ok bool) {
	if len(claim.Domains) == 0 || len(claim.Steps) == 0 {
		return Taken{}, true
	}
	rec := s.Actions[claim.Action]
	if rec == nil {
		return Taken{}, false // an unknown action gets nothing
	}
	d.dropStale(s, now)
	taken, free := d.isFree(s, now, claim)
	if free && !holdsAll(ownLocks(rec, now, claim.Steps), claim.Domains) {
		taken, free = d.isNext(s, now, claim)
	}
	if !free {
		d.enqueue(now, claim)
		return taken, false
	}
	delete(d.waiting, claim.key())
	if d.granted == nil {
		d.granted = map[claimKey]Claim{}
	}
	d.granted[claim.key()] = claim
	return Taken{}, true
}

// Leave removes the granted and the waiting claim of an action's step, or all claims of the action if step is "".
func (d *Domains) Leave(action, step string) {
	for key := range d.granted {
		if key.action == action && (step == "" || key.step == step) {
			delete(d.granted, key)
		}
	}
	for key := range d.waiting {
		if key.action == action && (step == "" || key.step == step) {
			delete(d.waiting, key)
		}
	}
}

// NewlyGrantable returns the actions with a waiting claim that would be granted now. It does not return an action again
// for the same claim until the action repeats the claim.
func (d *Domains) NewlyGrantable(s *State, now time.Time) []string {
	if len(d.waiting) == 0 {
		return nil
	}
	d.dropStale(s, now)
	var grantable []string
	taken, before := d.holders(s, now), map[string]actionSet{}
	for _, w := range d.byPriority(s, now) {
		free := !slices.ContainsFunc(w.Domains, func(domain string) bool { return taken[domain].hasOther(w.Action) || before[domain].hasOther(w.Action) })
		if free && !w.isAnnounced {
			w.isAnnounced = true
			grantable = append(grantable, w.Action)
		}
		for _, domain := range w.Domains {
			before[domain] = before[domain].withAction(w.Action)
		}
	}
	slices.Sort(grantable)
	return slices.Compact(grantable)
}

// actionSet is a set of actions that come before a claim. It stores only one action, and whether there are others.
type actionSet struct {
	one    string
	others bool
}

func (a actionSet) withAction(action string) actionSet {
	return actionSet{one: cmp.Or(a.one, action), others: a.others || (a.one != "" && a.one != action)}
}

func (a actionSet) hasOther(action string) bool { return a.others || (a.one != "" && a.one != action) }

// holders returns for each lock the actions that hold it. For one claim, [Domains.isFree] is cheaper.
func (d *Domains) holders(s *State, now time.Time) map[string]actionSet {
	taken := map[string]actionSet{}
	for _, rec := range s.Actions {
		for domain := range Occupied(rec, now) {
			taken[domain] = taken[domain].withAction(rec.ID)
		}
	}
	for _, grant := range d.granted {
		for _, domain := range grant.Domains {
			taken[domain] = taken[domain].withAction(grant.Action)
		}
	}
	return taken
}

// byPriority returns the waiting claims, the one with the highest priority first.
func (d *Domains) byPriority(s *State, now time.Time) []*waitingClaim {
	return slices.SortedFunc(maps.Values(d.waiting), func(a, b *waitingClaim) int {
		return cmp.Or(s.comparePriority(now, a.Action, a.since, b.Action, b.since), cmp.Compare(a.Steps[0], b.Steps[0]))
	})
}

// Began removes a granted claim. Call it when the start of the step is recorded, because the state has the locks from
// then on.
func (d *Domains) Began(action, step string) { delete(d.granted, claimKey{action, step}) }

// dropStale removes claims of actions that have ended, and waiting claims that were not repeated in time.
func (d *Domains) dropStale(s *State, now time.Time) {
	d.followClock(s)
	for key := range d.granted {
		if s.Actions[key.action] == nil {
			delete(d.granted, key)
		}
	}
	for key, w := range d.waiting {
		if s.Actions[key.action] == nil || now.Sub(w.asked) > claimTimeout {
			delete(d.waiting, key)
		}
	}
}

// followClock moves the times of waiting claims after a jump of the clock, so that the jump does not change how long
// they wait.
func (d *Domains) followClock(s *State) {
	if s.Clock.JumpedAt.Equal(d.jumped) {
		return
	}
	d.jumped = s.Clock.JumpedAt
	m := shiftBy(time.Duration(s.Clock.Jump))
	for _, w := range d.waiting {
		m.apply(&w.since)
		m.apply(&w.asked)
	}
}

// isFree reports whether no other action holds a lock of the claim. If one does, isFree returns that action.
func (d *Domains) isFree(s *State, now time.Time, claim Claim) (Taken, bool) {
	var taken []Taken
	for _, rec := range s.Actions {
		if rec.ID == claim.Action {
			continue
		}
		occupied := Occupied(rec, now)
		for _, domain := range claim.Domains {
			if step := occupied[domain]; step != "" {
				taken = append(taken, Taken{By: rec.ID, Step: step, Domain: domain, Stuck: s.stuckReason(rec)})
			}
		}
	}
	for _, grant := range d.granted {
		if domain := firstShared(grant.Domains, claim.Domains); domain != "" && grant.Action != claim.Action {
			taken = append(taken, Taken{By: grant.Action, Step: grant.Steps[0], Domain: domain})
		}
	}
	return firstTaken(taken)
}

// isNext reports whether no waiting claim for the same lock has priority over this claim. If one has, isNext returns
// its action.
func (d *Domains) isNext(s *State, now time.Time, claim Claim) (Taken, bool) {
	since := now
	if own := d.waiting[claim.key()]; own != nil {
		since = own.since
	}
	var before []Taken
	for _, w := range d.waiting {
		domain := firstShared(w.Domains, claim.Domains)
		if domain != "" && w.Action != claim.Action && s.hasPriority(now, w.Action, w.since, claim.Action, since) {
			before = append(before, Taken{By: w.Action, Domain: domain})
		}
	}
	return firstTaken(before)
}

func (s *State) hasPriority(now time.Time, one string, since time.Time, other string, otherSince time.Time) bool {
	return s.comparePriority(now, one, since, other, otherSince) < 0
}

// comparePriority compares the priority of two waiting actions. Persons' actions, and actions that have waited for
// priorityAfter, come before others. Among equals the earlier request comes first.
func (s *State) comparePriority(now time.Time, one string, since time.Time, other string, otherSince time.Time) int {
	a, b := s.Actions[one], s.Actions[other]
	if a == nil || b == nil {
		return 0
	}
	urgent := func(rec *journal.ActionRecord, since time.Time) bool {
		return rec.ByPerson() || now.Sub(since) >= priorityAfter
	}
	return cmp.Or(firstIf(urgent(a, since), urgent(b, otherSince)), RequestOrder(a, b))
}

func (d *Domains) enqueue(now time.Time, claim Claim) {
	if d.waiting == nil {
		d.waiting = map[claimKey]*waitingClaim{}
	}
	w := d.waiting[claim.key()]
	if w == nil {
		w = &waitingClaim{since: now}
		d.waiting[claim.key()] = w
	}
	w.Claim, w.asked, w.isAnnounced = claim, now, false
}

// firstTaken returns the first element in a fixed order, so that the message does not change without a reason. For an
// empty list it returns true.
func firstTaken(taken []Taken) (Taken, bool) {
	if len(taken) == 0 {
		return Taken{}, true
	}
	return slices.MinFunc(taken, func(a, b Taken) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Step, b.Step))
	}), false
}

// firstShared returns the first lock that both lists have, or "".
func firstShared(a, b []string) string {
	for _, domain := range a {
		if slices.Contains(b, domain) {
			return domain
		}
	}
	return ""
}

func holdsAll(occupied map[string]string, domains []string) bool {
	return !slices.ContainsFunc(domains, func(domain string) bool { return occupied[domain] == "" })
}
