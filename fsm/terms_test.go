package fsm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestStandingRulesAreThoseOfTheKindThatAreNotOnlyAboutBeginning(t *testing.T) {
	standing, err := TermsByKind(lamps())
	if err != nil {
		t.Fatal(err)
	}
	if got := standing[lampKind].Rules; !slices.Equal(got, []string{RuleSettling, RulePaused, "Daylight", RuleOneAtATime}) {
		t.Errorf("asked again are %q", got)
	}
}

func TestAKindOfActionThatNoRuleCouldHoldBackIsAMistake(t *testing.T) {
	for want, spoil := range map[string]func(*ActionKind){
		`machine "lantern"`: func(k *ActionKind) { k.Machine = "lantern" },
		`rule "Daylihgt"`:   func(k *ActionKind) { k.Rules = []string{"Daylihgt"} },
		"or neither":        func(k *ActionKind) { k.Turn = "" },
		"must have both":    func(k *ActionKind) { k.Rules = []string{RulePaused} },
	} {
		all := lamps()
		spoil(&all.Kinds[0])
		if _, err := TermsByKind(all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %s", err, want)
		}
	}
	twice := lamps()
	twice.Machine, twice.Rules = torch{}, nil
	if _, err := TermsByKind(lamps(), twice); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a kind that is there twice: got %v", err)
	}
}

func TestMachinesAndRulesHaveNamesOfTheirOwn(t *testing.T) {
	named := lamps()
	named.Machine, named.Kinds = torch{}, nil
	for want, all := range map[string][]Capability{
		`two machines "lamp"`:  {lamps(), {Machine: lamp{}}},
		`two rules "Daylight"`: {lamps(), named},
		`two rules "Settling"`: {{Machine: lamp{}, Rules: []Rule{{Name: RuleSettling}}}},
		"no title":             {{Machine: untitled{}}},
	} {
		if _, err := TermsByKind(all...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %s", err, want)
		}
	}
}

// untitled is a machine that has no page.
type untitled struct{ lamp }

func (untitled) Table() Table { return Table{Name: "untitled", Initial: "Dark"} }

func TestAWantOfAKindThatThereIsNotIsRefusedAloud(t *testing.T) {
	h := newHouse(t)
	without := lamps()
	without.Kinds = nil
	h.s = NewState(without)
	h.observe("hall", `{"lit":false}`)
	h.write(Decide(h.s, h.p, h.now).Events...)
	h.now = h.now.Add(time.Minute)
	h.decided("policy.refused hall by Kind")
	if reason := h.s.Refusals[0].Reason; !strings.Contains(reason, `"light-lamp"`) {
		t.Errorf("refused: %s", reason)
	}
}

func TestEveryKindObeysSafeModeWhateverItLists(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	rec := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: subject("hall")}
	h.write(journal.Draft{Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Payload: journal.JournalSalvaged{DamagedFile: "f"}})
	for _, manual := range []bool{false, true} {
		rec.Request.Manual = manual
		if got := CheckRule(h.s, h.p, h.now, RuleSafeMode, rec); !got.Hold || !strings.Contains(got.Reason, "accept") {
			t.Errorf("manual %v: got %+v, want a hold", manual, got)
		}
	}
}

func TestLampsAreLitOneAtATimeToo(t *testing.T) {
	h := newHouse(t)
	first := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: subject("hall"), RequestedAt: h.now}
	second := journal.ActionRecord{ID: "light-desk-2", Kind: lampKind, Subject: subject("desk"), RequestedAt: h.now.Add(1)}
	other := journal.ActionRecord{ID: "wash-1", Kind: "wash", Subject: subject("hall"), RequestedAt: h.now.Add(-1)}
	h.s.Actions = map[string]*journal.ActionRecord{first.ID: &first, second.ID: &second, other.ID: &other}
	if got := CheckRule(h.s, h.p, h.now, RuleOneAtATime, second); !got.Hold || !strings.Contains(got.Reason, first.ID) {
		t.Errorf("the second: got %+v, want it to wait for %s", got, first.ID)
	}
	if got := CheckRule(h.s, h.p, h.now, RuleOneAtATime, first); got.Hold {
		t.Errorf("the first: got %+v, want it to run", got)
	}
}
