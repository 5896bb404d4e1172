package loadbalancer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/journal"
)

// changes is a journal of changes, in a cluster whose nodes nobody has seen.
type changes struct{ *fsmtest.Journal }

func newChanges(t *testing.T) *changes {
	c := &changes{fsmtest.New(t, fsm.DefaultPolicy(), ChangeCapability())}
	c.Pass(time.Hour)
	return c
}

// asks has somebody ask for a change, and writes what comes of it.
func (c *changes) asks(actor string, input journal.KubeconfigsInput) (fsm.Admission, error) {
	c.T.Helper()
	admission, err := fsm.Admit(c.S, c.P, c.Now, fsm.Request{
		Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: actor, Input: c.JSON(input),
	})
	c.Write(admission.Events...)
	return admission, err
}

// is expects a state.
func (c *changes) is(want journal.State) {
	c.T.Helper()
	c.Decide()
	if got := c.S.Things[fsm.Key(journal.Kubeconfigs)].State; got != want {
		c.T.Errorf("it is %s, want %s", got, want)
	}
}

// needsPerson expects whether a person is needed, once EKCO has decided.
func (c *changes) needsPerson(want bool) {
	c.T.Helper()
	c.Decide()
	if reason, advice := c.S.Things[fsm.Key(journal.Kubeconfigs)].NeedsPerson(c.Now); (reason != "") != want || (advice != "") != want {
		c.T.Errorf("it needs a person because %q; advice: %q", reason, advice)
	}
}

func (c *changes) ends(outcome journal.Outcome, reason string) {
	c.T.Helper()
	rec := c.Open(journal.Kubeconfigs)
	c.Write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionEnded{Outcome: outcome, Reason: reason},
	})
}

var lb = journal.KubeconfigsInput{Server: "https://lb"}

func TestAChangeIsOnlyDoneWhenAPersonAsksForItAndKeptAfterwards(t *testing.T) {
	c := newChanges(t)
	c.Decide()
	if len(c.S.Things) != 0 {
		t.Errorf("before anybody has asked there is %+v", c.S.Things)
	}
	admission, err := c.asks("cli:a", lb)
	if err != nil || admission.Resumed || admission.Action == "" {
		t.Fatalf("%+v, %v", admission, err)
	}
	c.is(Changing)
	c.ends(journal.OutcomeDone, "node w1 is left alone: it is away")
	c.is(Partly)
	thing := c.S.Things[fsm.Key(journal.Kubeconfigs)]
	if got := thing.Details(fsm.NewWorld(c.S, c.P, c.Now)); !slices.Equal(got, []string{"the last change points the kubelets to https://lb", "node w1 is left alone: it is away"}) {
		t.Errorf("details are %q", got)
	}
	c.Pass(24 * time.Hour)
	c.is(Partly)
	if again, err := c.asks("cli:b", lb); err != nil || again.Resumed {
		t.Errorf("again: %+v, %v", again, err)
	}
	c.is(Changing)
	c.ends(journal.OutcomeDone, "")
	c.is(Changed)
	if _, err := c.asks("cli:b", lb); err != nil {
		t.Error(err)
	}
	c.is(Changing)
	c.ends(journal.OutcomeCancelled, "somebody has cancelled it")
	c.is(Partly)
}

func TestAnotherChangeIsRefusedWhileOneIsOpenAndTheSameJoins(t *testing.T) {
	c := newChanges(t)
	first := journal.KubeconfigsInput{Server: "https://lb", Internal: true}
	asked, err := c.asks("cli:a", first)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []journal.KubeconfigsInput{lb, {Server: "https://other", Internal: true}} {
		if _, err := c.asks("cli:b", other); !errors.Is(err, fsm.ErrRefused) || !strings.Contains(err.Error(), asked.Action+" is open and points the kubelets to https://lb with --internal; run this again when it has ended") {
			t.Error(err)
		}
	}
	joined, err := c.asks("cli:b", first)
	if err != nil || !joined.Resumed || joined.Action != asked.Action || !strings.HasSuffix(joined.Message, " by cli:a") {
		t.Errorf("%+v, %v", joined, err)
	}
}

func TestAChangeThatIsNotSaidIsRefused(t *testing.T) {
	c := newChanges(t)
	for want, request := range map[string]fsm.Request{
		"names no API server":  {Name: journal.Kubeconfigs.Name},
		"did you mean cluster": {Name: "clustre", Input: json.RawMessage(`{"server":"https://lb"}`)},
	} {
		request.Kind = journal.ActionChangeLoadBalancer
		if _, err := fsm.Admit(c.S, c.P, c.Now, request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	if _, err := c.asks("cli:a", journal.KubeconfigsInput{Server: "https://lb", Exclude: []string{"w1"}}); !errors.Is(err, fsm.ErrRefused) || !strings.Contains(err.Error(), `there is no node "w1" to exclude`) {
		t.Error(err)
	}
	if len(c.S.Actions) != 0 {
		t.Errorf("open are %+v", c.S.Actions)
	}
}

func TestAnAdoptedChangeGoesOn(t *testing.T) {
	c := newChanges(t)
	if _, err := c.asks("cli:a", lb); err != nil {
		t.Fatal(err)
	}
	rec := *c.Open(journal.Kubeconfigs)
	other := newChanges(t)
	other.Write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
	other.is(Changing)
	if joined, err := other.asks("cli:b", lb); err != nil || !joined.Resumed {
		t.Errorf("%+v, %v", joined, err)
	}
	other.ends(journal.OutcomeDone, "")
	other.is(Changed)
}

func TestTheFirstChangeIsRefusedInSafeModeAndOnlyPlannedInADryRun(t *testing.T) {
	c := newChanges(t)
	c.P.DryRun = true
	if _, err := c.asks("cli:a", lb); err != nil || !c.Open(journal.Kubeconfigs).Request.DryRun {
		t.Errorf("in a dry run: %v, %+v", err, c.Open(journal.Kubeconfigs))
	}
	c.ends(journal.OutcomeDryRun, "")
	c.needsPerson(false)
	c.P.DryRun = false
	if _, err := c.asks("cli:a", lb); err != nil {
		t.Fatal(err)
	}
	c.ends(journal.OutcomePartial, "node w1 is left alone: it is away")
	c.needsPerson(true)
	c.P.DryRun = true
	if _, err := c.asks("cli:a", journal.KubeconfigsInput{Server: "https://other"}); err != nil {
		t.Fatal(err)
	}
	c.ends(journal.OutcomeDryRun, "")
	c.needsPerson(true)
	c = newChanges(t)
	c.S.Journal.Salvaged = &journal.JournalSalvaged{Problem: "page 7"}
	if _, err := c.asks("cli:a", lb); !errors.Is(err, fsm.ErrRefused) || len(c.S.Actions) != 0 {
		t.Errorf("in safe mode: %v, %+v", err, c.S.Actions)
	}
}

// TestAChangeLeadsToThePrimariesThatThereAreOnlyWhereSomebodyKnowsThem: nobody can ask for others.
func TestAChangeLeadsToThePrimariesThatThereAreOnlyWhereSomebodyKnowsThem(t *testing.T) {
	for _, test := range []struct {
		enabled, internal bool
		want              []string
	}{{true, true, []string{"10.0.0.1"}}, {true, false, nil}, {false, true, nil}} {
		w := newWorld(t)
		w.see("p1", true)
		w.set(func(p *Policy) { p.Enabled = test.enabled })
		input := journal.KubeconfigsInput{Server: "https://lb", Internal: test.internal, Primaries: []string{"192.0.2.1"}}
		admission, err := fsm.Admit(w.S, w.P, w.Now, fsm.Request{Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: "cli:a", Input: w.JSON(input)})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(admission.Events...)
		asked, err := journal.InputOf[journal.KubeconfigsInput](w.Open(journal.Kubeconfigs).Request)
		if err != nil || !slices.Equal(asked.Primaries, test.want) {
			t.Errorf("%+v: %v, %q", test, err, asked.Primaries)
		}
	}
}
