package api

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// inVain is an action that waits for a preflight, and of which another step is tried in vain.
func inVain(of journal.ActionRecord, since time.Time) journal.ActionRecord {
	of.Holds = map[string]journal.ActionHeld{"a": {Preflight: "Healthy"}, "b": {Preflight: journal.HoldNextAttempt, Reason: "it is forbidden"}}
	of.HeldSince = map[string]time.Time{"a": since.Add(-time.Hour), "b": since}
	return of
}

// heldByFinalizer has a step of the action wait for a finalizer for so long.
func heldByFinalizer(s *Status, action journal.ActionRecord, ago time.Duration) {
	s.Actions = []journal.ActionRecord{action}
	s.Progress = map[string]map[string]actions.Progress{action.ID: {
		"delete-node": {Missing: "waits for finalizer a/b", NeedsOthers: true, Since: s.Now.Add(-ago)},
	}}
}

func TestTheVerdictIsThatOfTheWorstProblem(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	node := journal.NodeSubject("w1", "u1")
	lost := NodeStatus{Name: "w1", UID: "u1", State: fsmnode.Unknown, UnreachableSince: now.Add(-time.Minute)}
	purge := journal.ActionRecord{ID: "purge-w1-9", Kind: journal.ActionPurgeNode, Subject: node}
	clears := journal.ActionRecord{ID: "clear-w1-9", Kind: journal.ActionClearNode, Subject: node}
	paused := func(ago time.Duration, until time.Time) func(*Status) {
		return func(s *Status) { s.Pauses = map[string]fsm.PauseState{"": {At: now.Add(-ago), Until: until}} }
	}
	for name, test := range map[string]struct {
		change func(*Status)
		want   Overall
		kinds  []ProblemKind
	}{
		"nothing":                  {func(*Status) {}, OverallOK, nil},
		"an action":                {func(s *Status) { s.Actions = append(s.Actions, purge) }, OverallWorking, nil},
		"it has only just started": {func(s *Status) { s.Starting = &Starting{} }, OverallWorking, nil},
		"a pause":                  {paused(time.Hour, time.Time{}), OverallPaused, []ProblemKind{ProblemPaused}},
		"a pause of a day":         {paused(24*time.Hour, time.Time{}), OverallNeedsYou, []ProblemKind{ProblemPaused}},
		"a pause that ends":        {paused(time.Hour, now.Add(time.Hour)), OverallPaused, []ProblemKind{ProblemPaused}},
		"a pause of a node":        {func(s *Status) { s.Pauses = map[string]fsm.PauseState{"w1": {At: now}} }, OverallOK, nil},
		"a pause that holds an action": {func(s *Status) {
			paused(time.Minute, now.Add(time.Hour))(s)
			s.Next = []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Things: 2, Rule: fsm.RulePaused}}
		}, OverallNeedsYou, []ProblemKind{ProblemPaused}},
		"a pause of a node that holds an action": {func(s *Status) {
			s.Pauses = map[string]fsm.PauseState{"w1": {At: now}, "w2": {At: now}}
			s.Next = []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: node, Rule: fsm.RulePaused}}
		}, OverallNeedsYou, []ProblemKind{ProblemPaused}},
		"a pause of a node that ends and holds an action": {func(s *Status) {
			s.Pauses = map[string]fsm.PauseState{"w1": {At: now, Until: now.Add(time.Hour)}}
			s.Next = []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: node, Rule: fsm.RulePaused}}
		}, OverallWorking, []ProblemKind{ProblemPaused}},
		"a limitation":             {func(s *Status) { s.Absent = []string{"may not"} }, OverallOK, nil},
		"the journal is not open":  {func(s *Status) { s.Journal.Unopened = &UnopenedJournal{} }, OverallNeedsYou, []ProblemKind{ProblemJournalNotOpen}},
		"the journal was damaged":  {func(s *Status) { s.Journal.SafeMode = &journal.JournalSalvaged{} }, OverallNeedsYou, []ProblemKind{ProblemSafeMode}},
		"the journal lost its end": {func(s *Status) { s.Journal.Outdated = &journal.JournalOutdated{} }, OverallNeedsYou, []ProblemKind{ProblemSafeMode}},
		"the disk is full":         {func(s *Status) { s.Journal.Writable, s.Journal.Error = false, "no space" }, OverallNeedsYou, []ProblemKind{ProblemJournalUnwritable}},
		"no mirror, in an outage":  {func(s *Status) { s.Mirror, s.API.LostAt = "the API is unavailable", now }, OverallWorking, []ProblemKind{ProblemAPIUnreachable, ProblemMirror}},
		"no mirror":                {func(s *Status) { s.Mirror = "forbidden" }, OverallWorking, []ProblemKind{ProblemMirror}},
		"nobody runs":              {func(s *Status) { s.Operator = OperatorStatus{} }, OverallNeedsYou, []ProblemKind{ProblemNotRunning}},
		"a command runs":           {func(s *Status) { s.Operator = OperatorStatus{PID: 7} }, OverallOK, nil},
		"the API is away":          {func(s *Status) { s.API.LostAt = now.Add(-4 * time.Minute) }, OverallWorking, []ProblemKind{ProblemAPIUnreachable}},
		"the API is away for long": {func(s *Status) { s.API.LostAt = now.Add(-5 * time.Minute) }, OverallNeedsYou, []ProblemKind{ProblemAPIUnreachable}},
		"the clock is wrong":       {func(s *Status) { s.Clock.APIAhead = journal.Duration(time.Hour) }, OverallNeedsYou, []ProblemKind{ProblemClock}},
		"an event makes no sense":  {func(s *Status) { s.Defects = []string{"event 9"} }, OverallWorking, []ProblemKind{ProblemDefect}},
		"a rule is against it":     {func(s *Status) { s.Refusals = []fsm.Refusal{{Rule: fsm.RuleCooldown}} }, OverallWorking, []ProblemKind{ProblemBlocked}},
		"somebody undoes it":       {func(s *Status) { s.Refusals = []fsm.Refusal{{Rule: fsm.RuleContested, NeedsPerson: true}} }, OverallNeedsYou, []ProblemKind{ProblemBlocked}},
		"a thing needs a person": {func(s *Status) {
			s.Things = []ThingStatus{{Machine: "csr", Name: "csr-1", State: "Refused", NeedsPerson: "it asks for registry.kurl", Advice: "decide"}, {Machine: "csr", Name: "csr-2"}}
		}, OverallNeedsYou, []ProblemKind{ProblemNeedsPerson}},
		"a node is lost":    {func(s *Status) { s.Nodes = []NodeStatus{lost} }, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"a node was purged": {func(s *Status) { gone := lost; gone.State = fsmnode.Purged; s.Nodes = []NodeStatus{gone} }, OverallOK, nil},
		"a node is purged": {func(s *Status) {
			now := lost
			now.State = fsmnode.Purging
			s.Nodes, s.Actions = []NodeStatus{now}, []journal.ActionRecord{purge}
		}, OverallWorking, nil},
		"a node comes and goes":     {func(s *Status) { s.Nodes = []NodeStatus{{Name: "w1", Flapping: true}} }, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"a lost node is cleared":    {func(s *Status) { s.Nodes, s.Actions = []NodeStatus{lost}, []journal.ActionRecord{clears} }, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"a lost node is dealt with": {func(s *Status) { s.Nodes, s.Actions = []NodeStatus{lost}, []journal.ActionRecord{purge} }, OverallWorking, []ProblemKind{ProblemNodeLost}},
		"a lost node will be dealt with": {func(s *Status) {
			s.Nodes, s.Next = []NodeStatus{lost}, []fsm.Upcoming{{Kind: journal.ActionPurgeNode, Subject: node, At: now.Add(time.Hour)}}
		}, OverallWorking, []ProblemKind{ProblemNodeLost}},
		"nobody runs, who would know whether it is back": {func(s *Status) { s.Operator, s.Nodes = OperatorStatus{}, []NodeStatus{lost} }, OverallNeedsYou, []ProblemKind{ProblemNotRunning}},
		"a lost node would have been dealt with, but never is": {func(s *Status) {
			s.Nodes, s.Next = []NodeStatus{lost}, []fsm.Upcoming{{Kind: journal.ActionPurgeNode, Subject: node, At: now, Never: true}}
		}, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"a lost node will never be dealt with": {func(s *Status) {
			s.Nodes, s.Next = []NodeStatus{lost}, []fsm.Upcoming{{Kind: journal.ActionPurgeNode, Subject: node, Never: true}}
		}, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"a lost node would be dealt with but for a rule": {func(s *Status) {
			s.Nodes, s.Next = []NodeStatus{lost}, []fsm.Upcoming{{Kind: journal.ActionPurgeNode, Subject: node, At: now.Add(time.Hour), Rule: "Paused"}}
		}, OverallNeedsYou, []ProblemKind{ProblemNodeLost}},
		"an action waits": {func(s *Status) {
			held := purge
			held.Holds = map[string]journal.ActionHeld{"x": {Preflight: "Healthy"}}
			s.Actions = []journal.ActionRecord{held}
		}, OverallWorking, []ProblemKind{ProblemHeld}},
		"attempts are in vain": {
			func(s *Status) { s.Actions = []journal.ActionRecord{inVain(purge, now.Add(-4*time.Minute))} },
			OverallWorking,
			[]ProblemKind{ProblemHeld},
		},
		"attempts are in vain for long": {
			func(s *Status) { s.Actions = []journal.ActionRecord{inVain(purge, now.Add(-5*time.Minute))} },
			OverallNeedsYou,
			[]ProblemKind{ProblemHeld},
		},
		"Ceph is unhealthy": {func(s *Status) {
			held := purge
			held.Holds = map[string]journal.ActionHeld{"purge-osd 3": {Preflight: "CephHealthy", NeedsPersonAfter: journal.Duration(time.Hour)}}
			held.HeldSince = map[string]time.Time{"purge-osd 3": now.Add(-59 * time.Minute)}
			s.Actions = []journal.ActionRecord{held}
		}, OverallWorking, []ProblemKind{ProblemHeld}},
		"Ceph is unhealthy for long": {func(s *Status) {
			held := purge
			held.Holds = map[string]journal.ActionHeld{"a": {Preflight: "Healthy"}, "purge-osd 3": {Preflight: "CephHealthy", NeedsPersonAfter: journal.Duration(time.Hour)}}
			held.HeldSince = map[string]time.Time{"a": now.Add(-2 * time.Hour), "purge-osd 3": now.Add(-time.Hour)}
			s.Actions = []journal.ActionRecord{held}
		}, OverallNeedsYou, []ProblemKind{ProblemHeld}},
		"a finalizer has held a step for a moment": {func(s *Status) { heldByFinalizer(s, purge, 29*time.Second) }, OverallWorking, nil},
		"a finalizer holds a step":                 {func(s *Status) { heldByFinalizer(s, purge, 29*time.Second) }, OverallWorking, nil},
		"a finalizer holds a step for long":        {func(s *Status) { heldByFinalizer(s, purge, 30*time.Second) }, OverallNeedsYou, []ProblemKind{ProblemHeld}},
		"a finalizer holds a step for long, another for less, and a check a third": {func(s *Status) {
			action := purge
			action.Holds = map[string]journal.ActionHeld{"purge-osd 1": {Preflight: "CephHealthy", Reason: "HEALTH_WARN"}}
			heldByFinalizer(s, action, 5*time.Minute)
			s.Progress[purge.ID]["a-step"] = actions.Progress{Missing: "waits for finalizer c/d", NeedsOthers: true, Since: s.Now.Add(-time.Minute)}
		}, OverallNeedsYou, []ProblemKind{ProblemHeld}},
		"a step takes its time": {func(s *Status) {
			heldByFinalizer(s, purge, time.Hour)
			s.Progress[purge.ID]["delete-node"] = actions.Progress{Missing: "a copy", Since: s.Now.Add(-time.Hour)}
		}, OverallWorking, nil},
		"a node is lost, and EKCO has only just started": {func(s *Status) {
			s.Nodes, s.Next = []NodeStatus{lost}, []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Things: 1, At: now.Add(time.Second), Rule: fsm.RuleSettling}}
		}, OverallWorking, []ProblemKind{ProblemNodeLost}},
		"an action stalled, and more": {func(s *Status) {
			stalled := purge
			stalled.Stalled = &journal.ActionStalled{Step: "delete-node", Reason: "tried 5 times"}
			s.Actions, s.Mirror = []journal.ActionRecord{stalled}, "forbidden"
		}, OverallNeedsYou, []ProblemKind{ProblemStalled, ProblemMirror}},
		"a newer EKCO's action": {func(s *Status) {
			newer := purge
			newer.Unreadable = "step.sung"
			s.Actions = []journal.ActionRecord{newer}
		}, OverallNeedsYou, []ProblemKind{ProblemUnreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			status := Status{Now: now, Operator: OperatorStatus{Running: true, PID: 7}, Journal: JournalStatus{Writable: true}}
			test.change(&status)
			Judge(&status, func(journal.ActionKind) string { return "purge" })
			var kinds []ProblemKind
			for _, problem := range status.Problems {
				kinds = append(kinds, problem.Kind)
				if problem.Reason == "" || problem.Advice == "" {
					t.Errorf("%s says too little: %+v", problem.Kind, problem)
				}
				if problem.NeedsYou && problem.Command == "" {
					t.Errorf("%s needs a person and names no command", problem.Kind)
				}
			}
			if diff := cmp.Diff(test.kinds, kinds); diff != "" || status.Verdict != test.want {
				t.Errorf("verdict %s, want %s; problems (-want +got):\n%s", status.Verdict, test.want, diff)
			}
		})
	}
}

func TestWhenManyNodesAreLostAtOnceNobodyIsToldToPurgeThemFirst(t *testing.T) {
	storm := fsm.Refusal{Rule: fsmnode.RuleStormBrake}
	for name, change := range map[string]func(*Status){
		"refused":  func(s *Status) { s.Refusals = []fsm.Refusal{storm} },
		"foreseen": func(s *Status) { s.Next = []fsm.Upcoming{{Rule: fsmnode.RuleStormBrake}} },
		"half of all": func(s *Status) {
			s.Nodes = append(s.Nodes, NodeStatus{Name: "w2", Flapping: true}, NodeStatus{Name: "w3"}, NodeStatus{Name: "w4"},
				NodeStatus{Name: "w5", State: fsmnode.Purged, UnreachableSince: s.Now})
		},
		"": func(s *Status) { s.Nodes = append(s.Nodes, NodeStatus{Name: "w2"}) },
	} {
		status := Status{Now: time.Now(), Operator: OperatorStatus{Running: true}, Nodes: []NodeStatus{{Name: "w1", UnreachableSince: time.Now()}}}
		change(&status)
		if advice := nodeProblems(&status)[0].Advice; strings.HasPrefix(advice, "many nodes are lost at once: check the network first. ") == (name == "") {
			t.Errorf("%s: %q", name, advice)
		}
	}
}

func TestAJournalThatWasDamagedIsOneProblemAlsoIfItLacksEvents(t *testing.T) {
	damaged, outdated := &journal.JournalSalvaged{Problem: "page 7", Recovered: 1}, &journal.JournalOutdated{}
	for want, j := range map[string]JournalStatus{
		"the journal was damaged and lost its newest events, so EKCO only observes: page 7": {Writable: true, SafeMode: damaged, Outdated: outdated},
		"the journal was damaged, so EKCO only observes: page 7":                            {Writable: true, SafeMode: damaged},
		"the journal lost its newest events, so EKCO only observes":                         {Writable: true, Outdated: outdated},
		"the journal was damaged and its events are lost, so EKCO only observes: page 7":    {Writable: true, SafeMode: &journal.JournalSalvaged{Problem: "page 7"}, Outdated: outdated},
	} {
		if got := journalProblems(&Status{Journal: j}); len(got) != 1 || got[0].Reason != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestAStalledActionSaysWhenItIsTriedAgain(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for next, want := range map[time.Time]bool{{}: false, at: true} {
		action := journal.ActionRecord{Stalled: &journal.ActionStalled{Step: "a"}, Steps: map[string]journal.StepRecord{"a": {NextTry: next}}}
		if hint := NextTryHint(action); strings.Contains(hint, "2026-11-22T03:00:00Z") != want {
			t.Errorf("%s: %q", next, hint)
		}
	}
}

func TestADeedIsNamedAsPeopleSayIt(t *testing.T) {
	for want, verb := range map[string]string{"purge of worker-2": "purge", "raise the copies of worker-2": "raise the copies of", "move a replica of worker-2": "move a replica of"} {
		if got := actionText(verb, journal.NodeSubject("worker-2", "u")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := actionText("clear", journal.ClusterSubject); got != "clear" {
		t.Errorf("of the cluster: %q", got)
	}
}

func TestAProblemSaysSinceWhenItIsThere(t *testing.T) {
	then := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	node := journal.NodeSubject("w1", "u1")
	for name, status := range map[string]Status{
		"a hold":  {Actions: []journal.ActionRecord{{ID: "a", Subject: node, Holds: map[string]journal.ActionHeld{"x": {}}, HeldSince: map[string]time.Time{"x": then}}}},
		"a stall": {Actions: []journal.ActionRecord{{ID: "a", Subject: node, Stalled: &journal.ActionStalled{}, StalledAt: then}}},
		"others": {
			Now: then.Add(time.Minute), Actions: []journal.ActionRecord{{ID: "a", Subject: node}},
			Progress: map[string]map[string]actions.Progress{"a": {"x": {NeedsOthers: true, Missing: "m", Since: then}}},
		},
		"safe mode": {Journal: JournalStatus{SafeMode: &journal.JournalSalvaged{}, SafeModeSince: then}},
		"its other": {Journal: JournalStatus{Outdated: &journal.JournalOutdated{}, SafeModeSince: then}},
	} {
		status.Operator = OperatorStatus{Running: true, PID: 7}
		Judge(&status, func(journal.ActionKind) string { return "purge" })
		if len(status.Problems) != 1 || status.Problems[0].Since == nil || !status.Problems[0].Since.Equal(then) {
			t.Errorf("%s: %+v", name, status.Problems)
		}
	}
}

func TestNoOperatorRunsSinceTheLastSignOfOne(t *testing.T) {
	began := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	wrote := began.Add(time.Hour)
	for name, test := range map[string]struct {
		operator fsm.OperatorState
		since    time.Time
	}{
		"it was killed":  {fsm.OperatorState{StartedAt: began}, wrote},
		"it was stopped": {fsm.OperatorState{StartedAt: began, StoppedAt: began.Add(time.Minute)}, began.Add(time.Minute)},
		"there was none": {fsm.OperatorState{}, time.Time{}},
	} {
		status := Status{Operator: OperatorStatus{OperatorState: test.operator}, Journal: JournalStatus{Stat: journal.Stat{LastTime: wrote}}}
		Judge(&status, func(journal.ActionKind) string { return "purge" })
		if len(status.Problems) != 1 || (status.Problems[0].Since == nil) != test.since.IsZero() ||
			status.Problems[0].Since != nil && !status.Problems[0].Since.Equal(test.since) {
			t.Errorf("%s: %+v", name, status.Problems)
		}
	}
}

func TestSafeModeIsThereSinceTheFirstOfItsReasons(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, test := range []struct {
		salvaged, outdated, want time.Time
	}{{early, late, early}, {late, early, early}, {early, time.Time{}, early}, {time.Time{}, late, late}, {}} {
		if got := safeModeSince(fsm.JournalState{SalvagedAt: test.salvaged, OutdatedAt: test.outdated}); !got.Equal(test.want) {
			t.Errorf("damaged at %s, outdated at %s: since %s", test.salvaged, test.outdated, got)
		}
	}
}

func TestOfANodeThatComesAndGoesItIsNotSaidToBringItBack(t *testing.T) {
	status := Status{Operator: OperatorStatus{Running: true}, Nodes: []NodeStatus{{Name: "w1", Flapping: true}, {Name: "w2"}, {Name: "w3"}}}
	problems := nodeProblems(&status)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Advice, "check its network") {
		t.Errorf("got %+v", problems)
	}
}

func TestTheProblemNamesTheFinalizer(t *testing.T) {
	status := Status{Now: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)}
	heldByFinalizer(&status, journal.ActionRecord{ID: "purge-w1-9", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "u1")}, time.Minute)
	for missing, want := range map[string]string{
		"waits for finalizer a/b on node w1; it goes on when x: kubectl patch": "purge of w1 waits for finalizer a/b on node w1",
		"the API server has not answered":                                      "purge of w1 waits at delete-node: the API server has not answered",
	} {
		p := status.Progress["purge-w1-9"]["delete-node"]
		p.Missing = missing
		status.Progress["purge-w1-9"]["delete-node"] = p
		problems := actionProblems(&status, func(journal.ActionKind) string { return "purge" })
		if len(problems) != 1 || problems[0].Reason != want || strings.Contains(missing, "kubectl") != (problems[0].Advice == "it goes on when x: kubectl patch") {
			t.Errorf("got %+v, want %q", problems, want)
		}
	}
}

func TestWhatAPauseBlocksIsEndedByResume(t *testing.T) {
	node := journal.NodeSubject("w1", "u1")
	for name, test := range map[string]struct {
		pauses map[string]fsm.PauseState
		rule   string
		want   string
	}{
		"everything is paused": {map[string]fsm.PauseState{"": {}, "w2": {}}, fsm.RulePaused, "ekco resume"},
		"the node is paused":   {map[string]fsm.PauseState{"": {}, "w1": {}}, fsm.RulePaused, "ekco resume w1"},
		"another rule":         {map[string]fsm.PauseState{"w1": {}}, "StormBrake", "ekco explain node/w1"},
	} {
		status := Status{Pauses: test.pauses, Refusals: []fsm.Refusal{{Rule: test.rule, Subject: node}}}
		problems := refusalProblems(&status, func(journal.ActionKind) string { return "clear" })
		if len(problems) != 1 || problems[0].Command != test.want {
			t.Errorf("%s: got %+v, want %q", name, problems, test.want)
		}
	}
}

func TestOfSeveralStepsThatOthersHoldTheFirstIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	steps := map[string]actions.Progress{"a": {Missing: "m", Since: now.Add(-time.Hour)}}
	for _, id := range []string{"b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		steps[id] = actions.Progress{NeedsOthers: true, Missing: id, Since: now.Add(-time.Hour)}
	}
	if step, waits := heldByOthers(now, steps); step != "b" || waits.Missing != "b" {
		t.Errorf("it is %s: %+v", step, waits)
	}
}

func TestANodeThatIsGoneIsNeitherReadyNorCordoned(t *testing.T) {
	node := &fsmnode.Node{Thing: &fsm.Thing{}, Facts: journal.NodeFacts{Taints: []journal.Taint{{Key: journal.TaintUnschedulable}}}}
	if got := nodeStatus(node); !got.Ready || !got.Cordoned {
		t.Errorf("a node is %+v", got)
	}
	node.GoneAt = time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	if got := nodeStatus(node); got.Ready || got.Cordoned {
		t.Errorf("a node that is gone is %+v", got)
	}
}

func TestTheAdviceOnALostNodeHasItsAddressAndIsNoPurge(t *testing.T) {
	for address, want := range map[string]string{"10.128.0.4": "ping 10.128.0.4 ", "": "ping w1 ", "$(reboot)": "ping w1 "} {
		status := Status{Operator: OperatorStatus{Running: true}, Nodes: []NodeStatus{
			{Name: "w1", InternalIP: address, UnreachableSince: time.Unix(100, 0)}, {Name: "w2"}, {Name: "w3"},
		}}
		got := nodeProblems(&status)[0].Advice
		if !strings.Contains(got, want) || !strings.Contains(got, "systemctl status kubelet") || !strings.HasSuffix(got, "ekco purge-node w1 --dry-run") {
			t.Errorf("it says %q", got)
		}
	}
	if got := nodeStatus(&fsmnode.Node{Thing: &fsm.Thing{}, Facts: journal.NodeFacts{InternalIP: "10.128.0.4"}}).InternalIP; got != "10.128.0.4" {
		t.Errorf("the address is %q", got)
	}
}
