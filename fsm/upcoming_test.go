package fsm

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/replicatedhq/ekco/journal"
)

// foreseen returns what is foreseen, without its reasons.
func (h *house) foreseen() []Upcoming {
	h.t.Helper()
	return Foresee(h.s, h.p, h.now)
}

func (h *house) wantForeseen(want ...Upcoming) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.foreseen(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Upcoming{}, "Why")); diff != "" {
		h.t.Errorf("foreseen (-want +got):\n%s", diff)
	}
	for _, u := range h.foreseen() {
		if u.Rule != "" && u.Why == "" {
			h.t.Errorf("%s of %s: %s gives no reason", u.Kind, u.Subject.Name, u.Rule)
		}
	}
}

func TestWhatIsDueLaterIsForeseenUntilItBegins(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	dark := h.now
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: subject("hall"), At: dark.Add(time.Minute)})
	h.now = h.now.Add(time.Minute)
	h.wantForeseen()
}

func TestARuleThatRefusesNowAndThenIsForeseen(t *testing.T) {
	h := newHouse(t)
	h.observe("window", `{"lit":false}`)
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: subject("window"), Rule: "Daylight"})
	h.now = h.now.Add(time.Hour)
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: subject("window"), Rule: "Daylight"})
}

func TestARuleThatEndsInTimeIsNotForeseenAndOneThatEndsLaterSaysWhen(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	due := h.now.Add(time.Minute)
	pause := func(d time.Duration) {
		h.write(journal.Draft{Type: journal.TypePauseSet, Subject: subject("hall"), Payload: journal.PauseSet{Reason: "guests", Until: h.now.Add(d)}})
	}
	pause(30 * time.Second)
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: subject("hall"), At: due})
	until := h.now.Add(10 * time.Minute)
	pause(10 * time.Minute)
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: subject("hall"), At: until, Rule: RulePaused})
}

func TestWhatARuleAboutTheClusterKeepsWaitingIsCounted(t *testing.T) {
	h := newHouse(t)
	h.p.Settling = time.Hour
	settled := h.now.Add(time.Hour)
	for _, name := range []string{"hall", "attic", "cellar"} {
		h.observe(name, `{"lit":false}`)
	}
	h.now = h.now.Add(time.Minute)
	h.wantForeseen(Upcoming{Kind: lampKind, Subject: journal.ClusterSubject, Things: 3, At: settled, Rule: RuleSettling})
}

func TestToForeseeChangesNothingAndWithoutAnOperatorNothingIsForeseen(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	before, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	h.foreseen()
	after, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before.State), string(after.State)); diff != "" {
		t.Errorf("the state changed:\n%s", diff)
	}
	h.p.Passive = true
	h.wantForeseen()
}

func TestOfOneThingWhatARuleAboutTheClusterKeepsWaitingIsForeseen(t *testing.T) {
	h := newHouse(t)
	for _, name := range []string{"hall", "attic"} {
		h.observe(name, `{"lit":false}`)
	}
	until := h.now.Add(time.Hour)
	h.write(journal.Draft{Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Payload: journal.PauseSet{Reason: "guests", Until: until}})
	want := []Upcoming{{Kind: lampKind, Subject: subject("hall"), At: until, Rule: RulePaused}}
	if diff := cmp.Diff(want, ForeseeThing(h.s, h.p, h.now, subject("hall")), cmpopts.IgnoreFields(Upcoming{}, "Why")); diff != "" {
		t.Errorf("foreseen of one (-want +got):\n%s", diff)
	}
	if got := ForeseeThing(h.s, h.p, h.now, subject("cellar")); got != nil {
		t.Errorf("of what is not there: %+v", got)
	}
	h.p.Passive = true
	if got := ForeseeThing(h.s, h.p, h.now, subject("hall")); len(got) != 0 {
		t.Errorf("without an operator: %+v", got)
	}
}

// prophet is a lamp of which its machine foresees that EKCO will want to light it.
type prophet struct{ lamp }

func (prophet) Foresee(_ *Thing, w *World, foresee func(Upcoming)) {
	foresee(Upcoming{Kind: lampKind, At: w.Now.Add(30 * time.Second)})
}

func newProphecy(t *testing.T) *house {
	of := lamps()
	of.Machine = prophet{}
	return newHouseOf(t, of)
}

func TestOfOneThingTheEarliestIsForeseenFirst(t *testing.T) {
	h := newProphecy(t)
	h.observe("hall", `{"lit":false}`)
	var in []time.Duration
	for _, u := range ForeseeThing(h.s, h.p, h.now, subject("hall")) {
		in = append(in, u.At.Sub(h.now))
	}
	if !slices.Equal(in, []time.Duration{30 * time.Second, time.Minute}) {
		t.Errorf("foreseen are things in %v", in)
	}
}

// TestWhatIsForeseenIsNotJudgedByTheChangeOfWhatIsWanted: somebody undoes the latter.
func TestWhatIsForeseenIsNotJudgedByTheChangeOfWhatIsWanted(t *testing.T) {
	h := newProphecy(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 2 {
		h.putOut(10 * time.Minute)
		h.light()
	}
	h.putOut(10 * time.Minute)
	var rules []string
	for _, u := range ForeseeThing(h.s, h.p, h.now, subject("hall")) {
		rules = append(rules, u.Rule)
	}
	if !slices.Equal(rules, []string{"", RuleContested}) {
		t.Errorf("against what is foreseen are %q", rules)
	}
}
