package node

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// host is a world on a machine whose clock can be wrong and can be set.
type host struct {
	*world
	boot string
	up   time.Duration
	// skew is how far the API server's clock is ahead.
	skew time.Duration
}

func newHost(t failer) *host {
	t.Helper()
	m := &host{world: newWorld(t), boot: "boot-1", up: 24 * time.Hour}
	m.start()
	m.pass(time.Minute)
	m.cluster("w1", "w2", "w3", "w4")
	m.decide()
	return m
}

func (m *host) pass(d time.Duration) {
	m.now = m.now.Add(d)
	m.up += d
}

// set moves the machine's clock while no EKCO runs.
func (m *host) set(by time.Duration) {
	m.now = m.now.Add(by)
	m.skew -= by
}

// jump moves the machine's clock while EKCO runs, and has EKCO notice it.
func (m *host) jump(by time.Duration) {
	m.set(by)
	m.operator(journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(by)})
}

func (m *host) start() {
	m.operator(journal.TypeOperatorStarted, journal.OperatorStarted{
		Version: "1", Host: "h", BootID: m.boot, Uptime: journal.Duration(m.up), ClockSkew: m.measured(),
	})
}

func (m *host) measured() *journal.Duration {
	skew := journal.Duration(m.skew)
	return &skew
}

// reboot boots the machine, with a clock that is off by that much afterwards.
func (m *host) reboot(name string, off time.Duration) {
	m.boot, m.up = name, 0
	m.set(off)
}

// operator writes an event of the operator itself.
func (m *host) operator(typ journal.Type, payload journal.Payload) {
	m.t.Helper()
	m.write(journal.Draft{Type: typ, Subject: journal.OperatorSubject, Actor: fsm.ActorOperator, Payload: payload})
}

// settled ends settling.
func (m *host) settled() { m.pass(m.p.Settling) }

// wantNoRequest decides, and expects nothing to be asked for.
func (m *host) wantNoRequest(when string) {
	m.t.Helper()
	for _, draft := range m.decide().Events {
		if draft.Type == journal.TypeActionRequested {
			m.t.Fatalf("%s: %s", when, lines([]journal.Draft{draft}))
		}
	}
}

func (m *host) wantPurge(when string) {
	m.t.Helper()
	for _, draft := range m.decide().Events {
		if r, ok := draft.Payload.(journal.ActionRequested); ok && r.Kind == journal.ActionPurgeNode {
			return
		}
	}
	m.t.Fatalf("%s: no purge is asked for; refusals: %+v", when, m.s.Refusals)
}

func TestANodeLostSecondsAgoIsNotDueHoweverOldItsTaintLooks(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.decide()
	// EKCO's clock is ahead of the one that dated the taint.
	w.observe("w1", unreachableSince(w.now.Add(-70*time.Minute)))
	w.terminating("w1", "a")
	w.wantDecided("node.transitioned w1: Healthy to Unknown")
	w.pass(w.p.ClearAfter - 1)
	w.wantDecided()
}

func TestAPodIsGivenItsOwnTimeByEKCOsClockWhateverTheAPIsSays(t *testing.T) {
	grace := journal.Duration(10 * time.Minute)
	for name, off := range map[string]time.Duration{
		"EKCO's clock is ahead": -3 * time.Hour, "EKCO's clock is behind": 3 * time.Hour, "both are right": 0,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.p.PurgeDeadNodes = false
			w.cluster("w1", "w2", "w3", "w4")
			w.lose("w1")
			deletion := w.now.Add(off + time.Duration(grace))
			w.tell(journal.TypePodTerminating, journal.PodSubject("default", "a", "uid-a", "w1"),
				journal.PodTerminating{NodeUID: uidOf("w1"), DeletionTimestamp: deletion, GracePeriod: &grace})
			w.decide()
			w.pass(time.Duration(grace) + w.p.PodGrace - 1)
			w.wantDecided()
			w.pass(1)
			w.wantDecided("action.requested w1: clear-node a", "node.transitioned w1: Unknown to Clearing")
		})
	}
}

func TestAClockSetForwardMakesNothingOlderAndSettlesAnew(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.terminating("w1", "a")
	m.decide()
	m.pass(time.Minute)
	m.jump(3 * time.Hour)
	m.wantNoRequest("the clock was three hours behind, the node is lost for a minute")
	if !m.s.API.SettlingFrom.Equal(m.now) {
		t.Errorf("settling from %s, want %s", m.s.API.SettlingFrom, m.now)
	}
	m.pass(m.p.ClearAfter - time.Minute)
	m.wantDecided("action.requested w1: clear-node a", "node.transitioned w1: Unknown to Clearing")
	m.pass(m.p.PurgeAfter - m.p.ClearAfter - 1)
	m.wantNoRequest("a moment before its time")
	m.pass(1)
	m.wantPurge("an hour after the loss")
}

func TestWhatIsDueSettlesAnewAfterTheClockWasSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": 3 * time.Hour, "back": -3 * time.Hour, "a suspended machine": 11 * time.Second} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			m.lose("w1")
			m.decide()
			m.pass(m.p.PurgeAfter)
			m.jump(by)
			m.wantDecided("policy.refused Cluster: purge-node by Settling")
			m.pass(m.p.Settling - 1)
			m.wantNoRequest("not settled")
			m.pass(1)
			m.wantPurge("settled")
		})
	}
}

// TestAClockSetBackHoldsNothingLonger waits with every wait that policy has.
func TestAClockSetBackHoldsNothingLonger(t *testing.T) {
	const back = -3 * time.Hour
	soon := func(m *host, wait time.Duration) {
		m.t.Helper()
		m.settled()
		if d := m.decide(); d.Next.After(m.now.Add(wait)) {
			m.t.Errorf("decides again in %s, want %s at most", d.Next.Sub(m.now), wait)
		}
		m.pass(wait)
		m.wantPurge("the wait is over")
	}
	t.Run("the age of a loss", func(t *testing.T) {
		m := newHost(t)
		m.lose("w1")
		m.decide()
		m.pass(time.Minute)
		m.jump(back)
		soon(m, m.p.PurgeAfter)
	})
	t.Run("a pause", func(t *testing.T) {
		m := newHost(t)
		m.lose("w1")
		m.decide()
		drafts, err := fsm.Pause(m.s, m.now, "", "r", 2*time.Hour, person)
		if err != nil {
			t.Fatal(err)
		}
		m.write(drafts...)
		m.pass(m.p.PurgeAfter)
		m.jump(back)
		soon(m, time.Hour)
	})
	t.Run("the cooldown", func(t *testing.T) {
		m := newHost(t)
		m.lose("w1")
		m.lose("w2")
		m.decide()
		m.pass(m.p.PurgeAfter)
		m.wantPurge("due")
		m.end(m.open(journal.ActionPurgeNode, "w1"), journal.OutcomeDone)
		m.jump(back)
		soon(m, m.p.Cooldown)
	})
	t.Run("between two starts", func(t *testing.T) {
		m := newHost(t)
		m.lose("w1")
		m.decide()
		m.pass(m.p.PurgeAfter)
		m.reboot("boot-2", back)
		m.skew = 0 // the API server's clock went back with it
		m.start()
		soon(m, m.p.PurgeAfter)
	})
}

func TestWithinOneBootTheTimeThatEKCOWasAwayCountsWhateverTheClockDid(t *testing.T) {
	for name, by := range map[string]time.Duration{"nothing": 0, "set forward": 3 * time.Hour, "set back": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			m.lose("w1")
			m.decide()
			m.pass(20 * time.Minute)
			m.set(by)
			m.skew = 0
			m.pass(20 * time.Minute)
			m.start()
			m.pass(20*time.Minute - 1)
			m.wantNoRequest("a moment before its time")
			m.pass(1)
			m.wantPurge("an hour after the loss")
			if jumped := !m.s.Clock.JumpedAt.IsZero(); jumped != (by != 0) {
				t.Errorf("jumped %v by %s", jumped, time.Duration(m.s.Clock.Jump))
			}
		})
	}
}

// TestAfterARebootANodeIsAsOldAsItWasWhenEKCOLastWrote: a machine can come up
// with a wrong clock, and the API server on it as well.
func TestAfterARebootANodeIsAsOldAsItWasWhenEKCOLastWrote(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.pass(20 * time.Minute)
	m.decide()
	m.pass(time.Hour)
	m.reboot("boot-2", 3*time.Hour)
	m.skew = 0
	m.start()
	m.settled()
	m.wantNoRequest("its age on record is 20 minutes")
	m.pass(40*time.Minute - m.p.Settling - 1)
	m.wantNoRequest("a moment before its time")
	m.pass(1)
	m.wantPurge("watched for an hour")
}

func TestAStartWithAClockThatIsWrongCountsFromZero(t *testing.T) {
	for name, test := range map[string]struct {
		skew time.Duration
		zero bool
	}{
		"EKCO is ahead":  {-journal.MaxSkew, true},
		"EKCO is behind": {journal.MaxSkew, true},
		"close enough":   {journal.MaxSkew - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			m.lose("w1")
			m.terminating("w1", "a")
			drafts, _ := fsm.Pause(m.s, m.now, "w2", "r", 2*time.Hour, person)
			m.write(drafts...)
			m.pass(20 * time.Minute)
			m.p.ClearDeadNodes = false
			m.decide()
			m.skew = test.skew
			m.start()
			age, left := m.now.Sub(m.node("w1").UnreachableSince), m.s.Pauses["node/w2"].Until.Sub(m.now)
			wantAge, wantLeft := 20*time.Minute, 100*time.Minute
			if test.zero {
				wantAge, wantLeft = 0, 2*time.Hour
			}
			if age != wantAge || m.now.Sub(m.node("w1").Pods["uid-a"].SeenAt) != wantAge || left != wantLeft {
				t.Errorf("the node is lost for %s, %s of the pause are left, want %s and %s", age, left, wantAge, wantLeft)
			}
			if m.s.Clock.Wrong() != test.zero {
				t.Errorf("wrong: %v", m.s.Clock.Wrong())
			}
		})
	}
}

// TestAPauseThatACommandSetWhileNoOperatorRanLastsAsLongAsItSaid: its time is
// not by the clock of the last operator.
func TestAPauseThatACommandSetWhileNoOperatorRanLastsAsLongAsItSaid(t *testing.T) {
	m := newHost(t)
	m.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	m.pass(time.Hour)
	m.reboot("boot-2", -3*time.Hour)
	drafts, _ := fsm.Pause(m.s, m.now, "", "r", 2*time.Hour, person)
	m.write(drafts...)
	m.pass(time.Minute)
	m.skew = 0
	m.start()
	if left := m.s.Pauses[""].Until.Sub(m.now); left != 119*time.Minute {
		t.Errorf("%s are left, want 1h59m", left)
	}
}

func TestAPauseSetByAClockThatWasAheadLastsNoLongerThanItSaid(t *testing.T) {
	m := newHost(t)
	m.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	m.set(3 * time.Hour)
	drafts, _ := fsm.Pause(m.s, m.now, "", "r", 2*time.Hour, person)
	m.write(drafts...)
	m.set(-3 * time.Hour)
	m.start()
	if left := m.s.Pauses[""].Until.Sub(m.now); left != 2*time.Hour {
		t.Errorf("%s are left, want 2h", left)
	}
}

func TestWhatAStartAppendsFirstIsNoSignOfTheLastOperator(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.decide()
	m.pass(20 * time.Minute)
	m.reboot("boot-2", 3*time.Hour)
	m.skew = 0
	rec := journal.ActionRecord{ID: "clear-1", Kind: journal.ActionClearNode, Subject: journal.NodeSubject("w2", "u2")}
	m.write(
		journal.Draft{Type: journal.TypeJournalOutdated, Subject: journal.JournalSubject, Actor: fsm.ActorOperator, Payload: journal.JournalOutdated{}},
		journal.Draft{Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: journal.ActionAdopted{Record: rec}},
	)
	m.start()
	if age := m.now.Sub(m.node("w1").UnreachableSince); age != 0 {
		t.Errorf("the node is lost for %s, it was seen lost in the last event", age)
	}
}

func TestSmallStepsOfTheClockBetweenStartsAddUp(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.decide()
	for range 10 {
		m.set(900 * time.Millisecond)
		m.start()
	}
	if age := m.now.Sub(m.node("w1").UnreachableSince); age >= time.Second {
		t.Errorf("the node is lost for %s, and no time has passed", age)
	}
}

// TestWhatObserversWriteIsASignOfTheOperator: an operator with nothing to decide
// writes nothing itself.
func TestWhatObserversWriteIsASignOfTheOperator(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.decide()
	m.pass(20 * time.Minute)
	m.write(journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject("w2", uidOf("w2")), Actor: "observer/nodes",
		Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}},
	})
	m.reboot("boot-2", 3*time.Hour)
	m.skew = 0
	m.start()
	if age := m.now.Sub(m.node("w1").UnreachableSince); age != 20*time.Minute {
		t.Errorf("the node is lost for %s, want the 20m that EKCO watched", age)
	}
}

func TestAJumpLeavesWhatOthersHoldAsItIs(t *testing.T) {
	m := newHost(t)
	m.lose("w1")
	m.terminating("w1", "a")
	m.decide()
	m.pass(m.p.ClearAfter)
	m.decide()
	m.abandon(m.open(journal.ActionClearNode, "w1"))
	purge := m.mustAdmit(ask("w2")).Action
	m.plan(purge)
	m.startStep(purge, "look")
	nodes, open := Known(m.s), m.s.OpenActions()
	known := nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.Name == "w1" })]
	vain := func() time.Time { return known.Failed[journal.ActionClearNode].At }
	abandoned, started := vain(), open[0].Steps["look"].StartedAt
	m.jump(3 * time.Hour)
	if !vain().Equal(abandoned) || !open[0].Steps["look"].StartedAt.Equal(started) {
		t.Errorf("it moved with the clock: %s and %s", vain().Sub(abandoned), open[0].Steps["look"].StartedAt.Sub(started))
	}
}

func TestAClockThatWasSetIsNoLongerKnownToBeWrong(t *testing.T) {
	m := newHost(t)
	m.skew = journal.MaxSkew
	m.start()
	if !m.s.Clock.Wrong() {
		t.Fatal("the clock is not known to be wrong")
	}
	m.jump(journal.MaxSkew)
	if m.s.Clock.Wrong() {
		t.Error("it was set, and is still called wrong")
	}
}

func TestNobodySettlesWhileNobodyObserves(t *testing.T) {
	m := newHost(t)
	m.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	m.jump(3 * time.Hour)
	if from := m.s.API.SettlingFrom; !from.IsZero() {
		t.Errorf("settling from %s", from)
	}
}

func TestAnAdoptedActionWaitsAnewForWhatAnotherMachinesClockSays(t *testing.T) {
	for name, by := range map[string]time.Duration{"behind": -3 * time.Hour, "ahead": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			there := w.now.Add(by)
			rec := journal.ActionRecord{
				ID: "purge-1", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "u1"), RequestedAt: there,
				Steps: map[string]journal.StepRecord{
					"out": {Attempts: 1, StartedAt: there, DoneAt: there}, "remove": {Attempts: 1, StartedAt: there, NextTry: there},
				},
			}
			w.write(journal.Draft{Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: journal.ActionAdopted{Record: rec}})
			got := w.s.Actions["purge-1"]
			if done := got.Steps["out"].DoneAt; !done.Equal(w.now) {
				t.Errorf("done at %s, want now, %s", done, w.now)
			}
			if !got.Steps["remove"].NextTry.IsZero() || got.RequestedAt.After(w.now) || got.Steps["out"].StartedAt.After(w.now) {
				t.Errorf("adopted as %+v", got)
			}
		})
	}
}

// ofAnotherClock are the times in a state that are not by EKCO's clock.
var ofAnotherClock = []string{".TimeAdded", ".CreatedAt", ".DeletionTimestamp", ".MirroredAt", ".LastTime", ".Origin.At", ".Adopted.EndedAt[]"}

// TestAJumpMovesEveryTimeThatIsByEKCOsClock finds the times of a state by
// themselves, so that a new one cannot be forgotten.
func TestAJumpMovesEveryTimeThatIsByEKCOsClock(t *testing.T) {
	s, filled := fsm.NewState(Capability()), 0
	fill(reflect.ValueOf(s).Elem())
	clear(s.Things)
	fillNode(of(s.Add(Machine, journal.NodeSubject("w1", "u"), Unknown, epoch)))
	everyTime(reflect.ValueOf(s).Elem(), "", func(_ string, was time.Time) time.Time { filled++; return epoch })
	if filled < 20 {
		t.Fatalf("only %d times were found", filled)
	}
	e := journal.Event{Seq: 2, Time: epoch.Add(3 * time.Hour)}
	s.Seq = e.Seq - 1
	e.Type, e.Version, e.Payload = journal.TypeClockJumped, 1, []byte(`{"by":"1h"}`)
	s.Apply(e)
	s.Time = epoch // the event's, and none that moves
	everyTime(reflect.ValueOf(s).Elem(), "", func(path string, is time.Time) time.Time {
		want := epoch.Add(time.Hour)
		switch {
		case path == ".API.SettlingFrom" || path == ".Clock.JumpedAt":
			want = e.Time
		case path == ".Time", strings.HasPrefix(path, ".Actions") && strings.Contains(path, ".Request."), ofOther(path):
			want = epoch
		case strings.HasSuffix(path, ".EndedAt"):
			want = epoch // an open action has none
		}
		if !is.Equal(want) {
			t.Errorf("%s is %s after a jump of 1h, want %s", path, is.Sub(epoch), want.Sub(epoch))
		}
		return is
	})
}

func ofOther(path string) bool {
	for _, suffix := range ofAnotherClock {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// fillNode fills a node and the thing that it is.
func fillNode(n *Node) {
	t := n.Thing
	fill(reflect.ValueOf(t).Elem())
	fill(reflect.ValueOf(n).Elem())
	n.Thing = t
}

// fill gives a value one of everything that it can hold.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Map:
		held := reflect.New(v.Type().Elem()).Elem()
		fill(held)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), held)
	}
}

// everyTime visits every time that a value holds, and sets it to what visit
// returns.
func everyTime(v reflect.Value, path string, visit func(path string, t time.Time) time.Time) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(visit(path, v.Interface().(time.Time))))
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil():
		everyTime(v.Elem(), path, visit)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[*fsm.Thing]() {
				everyTime(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			everyTime(v.Index(i), path+"[]", visit)
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			held := reflect.New(v.Type().Elem()).Elem()
			held.Set(v.MapIndex(key))
			everyTime(held, path+"[]", visit)
			v.SetMapIndex(key, held)
		}
	}
}

// TestNothingIsPurgedBeforeEKCOHasWatchedItLongEnough moves the clock, restarts
// EKCO and reboots its machine at random, and counts what EKCO has watched by
// itself.
func TestNothingIsPurgedBeforeEKCOHasWatchedItLongEnough(t *testing.T) {
	offsets := rapid.SampledFrom([]time.Duration{-26 * time.Hour, -3 * time.Hour, -11 * time.Second, 11 * time.Second, 70 * time.Minute, 40 * 24 * time.Hour})
	spans := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 7 * time.Minute, 25 * time.Minute})
	rapid.Check(t, func(t *rapid.T) {
		m := newHost(t)
		m.observe("w1", unreachableSince(m.now.Add(offsets.Draw(t, "taint"))))
		m.decide()
		var passed time.Duration // since the loss, while EKCO or its machine ran
		pass := func(d time.Duration) { m.pass(d); passed += d }
		boots := 0
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			pass(spans.Draw(t, "span"))
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				m.jump(offsets.Draw(t, "by"))
			case 1:
				m.set(offsets.Draw(t, "while away"))
				pass(spans.Draw(t, "away"))
				m.start()
			case 2:
				boots++
				m.reboot(strings.Repeat("x", boots), offsets.Draw(t, "wrong by"))
				if rapid.Bool().Draw(t, "together with the API server's") {
					m.skew = 0
				}
				m.start()
			}
			if passed < m.p.PurgeAfter {
				m.wantNoRequest("EKCO has watched for " + passed.String())
			}
			if d := fsm.Decide(m.s, m.p.whole(), m.now); d.Next.After(m.now.Add(m.p.PurgeAfter)) {
				t.Fatalf("decides again only in %s", d.Next.Sub(m.now))
			}
		}
		if Of(m.s, uidOf("w1")) != nil && openPurge(m.s, uidOf("w1")) == nil {
			m.pass(m.p.PurgeAfter)
			m.wantPurge("at last")
		}
	})
}
