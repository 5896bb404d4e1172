package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func show(t *testing.T, events []journal.Event, format string, options Options) []byte {
	t.Helper()
	var out bytes.Buffer
	history, err := NewHistory(&out, format, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if err := history.Event(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := history.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHistoryLooksAsItShould(t *testing.T) {
	events := wholeStory(t)
	options := Options{Words: vocabulary, Lookup: func(seq uint64) (journal.Event, bool) { return events[seq-1], true }}
	for _, format := range []string{"table", "wide", "tree"} {
		golden(t, "history."+format, show(t, events, format, options))
	}
	options.Color = true
	golden(t, "history.color", show(t, events, "tree", options))
}

func TestALiveTreeKeepsNothingBack(t *testing.T) {
	s := &story{t: t}
	node := journal.NodeSubject("worker-2", "uid-w2")
	s.tell(node, "purge-1", "cli:root@h", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	s.tell(node, "", "observer/node", 0, journal.TypeNodeGone, journal.NodeGone{Reason: "deleted"})
	s.tell(node, "purge-1", "operator", 0, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
	for _, test := range []struct {
		live bool
		// what is shown after each event
		want []string
	}{
		{true, []string{"", "is gone", "purge-node worker-2"}},
		{false, []string{"", "", "purge-node worker-2"}},
	} {
		var out bytes.Buffer
		tree, err := NewHistory(&out, "tree", Options{Words: vocabulary, Live: test.live})
		if err != nil {
			t.Fatal(err)
		}
		for i, event := range s.events {
			before := out.Len()
			if err := tree.Event(event); err != nil {
				t.Fatal(err)
			}
			if now := out.String()[before:]; !strings.Contains(now, test.want[i]) || (test.want[i] == "") != (now == "") {
				t.Errorf("live %v: event %d shows %q, want %q", test.live, i+1, now, test.want[i])
			}
		}
		if first := strings.Index(out.String(), "purge-node worker-2") < strings.Index(out.String(), "is gone"); first == test.live {
			t.Errorf("live %v: got\n%s", test.live, out.String())
		}
	}
}

func sentence(t *testing.T, subject journal.Subject, kind journal.Type, payload any) string {
	t.Helper()
	s := &story{t: t}
	s.tell(subject, "", "operator", 0, kind, payload)
	return Sentence(vocabulary, s.events[0].Decoded())
}

func TestSentencesSayWhatIsSo(t *testing.T) {
	node := journal.NodeSubject("w", "u")
	unreachable := func(effects ...string) journal.NodeObserved {
		var facts journal.NodeFacts
		for _, effect := range effects {
			facts.Taints = append(facts.Taints, journal.Taint{Key: journal.TaintUnreachable, Effect: effect, TimeAdded: began})
		}
		return journal.NodeObserved{NodeFacts: facts}
	}
	if one, two := sentence(t, node, journal.TypeNodeObserved, unreachable("NoSchedule")),
		sentence(t, node, journal.TypeNodeObserved, unreachable("NoSchedule", "NoExecute")); one == two {
		t.Errorf("two observations read alike: %s", one)
	}
	for _, test := range []struct {
		subject journal.Subject
		kind    journal.Type
		payload any
		want    string
	}{
		{journal.PodSubject("a", "b", "u", "w"), journal.TypePodTerminating, journal.PodTerminating{DeletionTimestamp: began.Add(time.Second)}, "is terminating (deadline 2"},
		{journal.PodSubject("a", "b", "u", "w"), journal.TypePodTerminating, journal.PodTerminating{DeletionTimestamp: began.Add(-time.Second)}, "is terminating (past its deadline 2"},
		{node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: "worker", Flapping: true, Excluded: true}}, "(worker) is flapping; EKCO records it again when it is stable; excluded"},
		{node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: "worker"}, Flaps: 1440}, "(worker) is ready, after it was lost 1440 times"},
		{journal.ClusterSubject, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionClearNode, Rule: "Paused"}, "clear any node: blocked by Paused"},
		{journal.ClusterSubject, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionClearNode, Rule: "Paused"}, "clear any node"},
	} {
		if got := sentence(t, test.subject, test.kind, test.payload); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.kind, got, test.want)
		}
	}
}

func TestNodesThatWentAwayLongAgoAreHidden(t *testing.T) {
	now := began.Add(48 * time.Hour)
	status := api.Status{Now: now, Nodes: []api.NodeStatus{
		{Name: "worker-1", State: fsmnode.Unknown, Since: began},
		{Name: "worker-2", State: fsmnode.Purged, Since: began},
		{Name: "worker-3", State: fsmnode.Gone, Since: began},
		{Name: "worker-4", State: fsmnode.Purged, Since: now.Add(-time.Hour)},
	}}
	for _, test := range []struct {
		all           bool
		shown, unsaid []string
	}{
		{false, []string{"worker-1", "worker-4", "2 nodes purged or gone for more than a day: ekco status --all"}, []string{"worker-2", "worker-3"}},
		{true, []string{"worker-1", "worker-2", "worker-3", "worker-4"}, []string{"--all"}},
	} {
		var out bytes.Buffer
		if err := Status(&out, status, "table", StatusOptions{Words: vocabulary, All: test.all}); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.shown {
			if !strings.Contains(out.String(), want) {
				t.Errorf("all %v: no %q in\n%s", test.all, want, out.String())
			}
		}
		for _, unwanted := range test.unsaid {
			if strings.Contains(out.String(), unwanted) {
				t.Errorf("all %v: %q in\n%s", test.all, unwanted, out.String())
			}
		}
	}
}

func TestEveryTypeOfTheCatalogueHasASentence(t *testing.T) {
	shown := make(map[journal.Type]bool)
	for _, event := range wholeStory(t) {
		shown[event.Type] = true
		if text := Sentence(vocabulary, event.Decoded()); strings.HasPrefix(text, string(event.Type)) {
			t.Errorf("%s has no sentence: %q", event.Type, text)
		}
	}
	for _, entry := range journal.Catalog() {
		empty, err := json.Marshal(entry.New())
		if err != nil {
			t.Fatal(err)
		}
		event := journal.Event{Seq: 1, Type: entry.Type, Version: entry.Version, Payload: empty}
		if text := Sentence(vocabulary, event.Decoded()); strings.HasPrefix(text, string(event.Type)) {
			t.Errorf("%s has no sentence: %q", entry.Type, text)
		}
		if !shown[entry.Type] {
			t.Errorf("the story of the tests has no %s", entry.Type)
		}
	}
}

func TestAnEventOfANewerEKCOIsQuoted(t *testing.T) {
	event := journal.Event{Seq: 1, Type: "moon.landed", Version: 3, Subject: journal.NodeSubject("w", "u"), Payload: []byte(`{"a":1}`)}
	if got := Sentence(vocabulary, event.Decoded()); !strings.Contains(got, "moon.landed of version 3 about node w") || !strings.Contains(got, `{"a":1}`) {
		t.Errorf("got %q", got)
	}
}

func TestJSONIsTheJournalsOwn(t *testing.T) {
	events := wholeStory(t)
	lines := bytes.Split(bytes.TrimSpace(show(t, events, "json", Options{Words: vocabulary})), []byte("\n"))
	if len(lines) != len(events) {
		t.Fatalf("got %d lines for %d events", len(lines), len(events))
	}
	for i, line := range lines {
		var got journal.Event
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(events[i], got); diff != "" {
			t.Errorf("event %d: %s", i+1, diff)
		}
	}
}

func TestYAMLHasADocumentForEachEvent(t *testing.T) {
	events := wholeStory(t)
	documents := strings.Split(string(show(t, events, "yaml", Options{Words: vocabulary})), "---\n")[1:]
	if len(documents) != len(events) {
		t.Fatalf("got %d documents for %d events", len(documents), len(events))
	}
	var got journal.Event
	if err := yaml.Unmarshal([]byte(documents[4]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != events[4].Type || got.Seq != 5 {
		t.Errorf("got %+v", got)
	}
}

// hostile holds what a terminal may obey: escapes, C1 controls, overrides.
const hostile = "a\x1b]0;pwned\x07\u009b31m\u202egnp\r\n\x7f\xff\u2066z\U000e0041"

func TestNothingThatATerminalObeysGetsThrough(t *testing.T) {
	event := journal.Event{
		Seq: 1, Time: began, Type: journal.TypeNodeTransitioned, Version: 1, Actor: hostile, Action: "",
		Subject: journal.Subject{Kind: hostile, Name: hostile, UID: hostile, Node: hostile},
	}
	body, err := json.Marshal(journal.NodeTransitioned{From: hostile, To: hostile, Reason: hostile})
	if err != nil {
		t.Fatal(err)
	}
	event.Payload = body
	inAction := event
	inAction.Action, inAction.Type = hostile, journal.TypeStepFailed
	if inAction.Payload, err = json.Marshal(journal.StepFailed{Step: hostile, Error: hostile}); err != nil {
		t.Fatal(err)
	}
	unknown := event
	unknown.Type, unknown.Payload = hostile, []byte("\""+"\u009b\u202e"+"\"")

	var outputs [][]byte
	for _, format := range HistoryFormats() {
		outputs = append(outputs, show(t, []journal.Event{event, inAction, unknown}, format, Options{Words: vocabulary}))
	}
	status := presentStatus()
	status.Operator.Host, status.Nodes[0].Name, status.Refusals[0].Reason = hostile, hostile, hostile
	status.Pauses[hostile] = fsm.PauseState{Reason: hostile, By: hostile}
	status.Defects, status.Absent = []string{hostile}, []string{hostile}
	status.Actions[0].ID, status.Actions[0].Subject.Name = hostile, hostile
	for _, format := range StatusFormats() {
		var out bytes.Buffer
		if err := Status(&out, status, format, StatusOptions{Words: vocabulary}); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, out.Bytes())
	}
	for i, output := range outputs {
		for _, r := range strings.ReplaceAll(string(output), "\n", "") {
			if !unicode.IsPrint(r) {
				t.Errorf("output %d lets %U through", i, r)
			}
		}
	}
}

func TestEscapedJSONSaysTheSame(t *testing.T) {
	want := map[string]string{"text": strings.ToValidUTF8(hostile, "\ufffd")}
	content, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(escapeJSON(content), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func presentStatus() api.Status {
	now := began.Add(time.Hour)
	node := journal.NodeSubject("worker-2", "uid-w2")
	return api.Status{
		Now: now,
		Operator: api.OperatorStatus{Running: true, PID: 7, OperatorState: fsm.OperatorState{
			Version: "v0.29.0", Host: "primary-0", StartedAt: began,
		}},
		Journal: api.JournalStatus{Writable: true, Stat: journal.Stat{
			LastSeq: 57, Events: 50, Bytes: 3 << 20, FreeBytes: 4096, Path: "/var/lib/ekco/journal.db",
		}},
		Nodes: []api.NodeStatus{
			{Name: "primary-0", Role: journal.RolePrimary, State: fsmnode.Healthy, Since: began, Ready: true, Normal: true},
			{Name: "worker-2", Role: journal.RoleWorker, State: fsmnode.Purging, Since: began.Add(50 * time.Minute), TerminatingPods: 2, Excluded: true, UnreachableSince: began},
		},
		Actions: []journal.ActionRecord{
			{
				ID: "purge-worker-2-18", Kind: journal.ActionPurgeNode, Subject: node, Status: fsm.Held, Planned: true,
				RequestedBy: "cli:root@primary-0", RequestedAt: now.Add(-90 * time.Second),
				Plan:  journal.Plan{Steps: []journal.PlannedStep{{ID: "one"}, {ID: "delete-node"}}},
				Steps: map[string]journal.StepRecord{"one": {DoneAt: now}, "delete-node": {Attempts: 2, LastError: "timeout"}},
				Holds: map[string]journal.ActionHeld{"delete-node": {Preflight: "OneAtATime", Step: "delete-node", Reason: "purge-x runs"}},
			},
			{
				ID: "clear-worker-2-9", Kind: journal.ActionClearNode, Subject: node, Status: fsm.Stalled, RequestedBy: "operator",
				RequestedAt: now.Add(-time.Minute), PastNoReturn: true, Stalled: &journal.ActionStalled{Step: "delete-pod a/b", Reason: "5 attempts failed"},
			},
		},
		Refusals: []fsm.Refusal{{Subject: node, Kind: journal.ActionPurgeNode, Rule: "StormBrake", Reason: "too many", Since: began}},
		Pauses:   map[string]fsm.PauseState{"": {Reason: "maintenance", By: "cli:root@primary-0", At: began, Until: now.Add(time.Hour)}, "worker-2": {Reason: "disk swap", By: "cli:root@primary-0", At: began}},
		Defects:  []string{"event 9 could not be folded"},
		Absent:   []string{"may not create events"},
	}
}

// lostStatus is that of a node that was lost a moment ago.
func lostStatus() api.Status {
	s := presentStatus()
	s.Actions, s.Refusals, s.Pauses, s.Defects, s.Absent = nil, nil, nil, nil, nil
	s.Nodes[1].State = fsmnode.Unknown
	node := journal.NodeSubject("worker-2", "uid-w2")
	s.Nodes[1].UID = node.UID
	s.Next = []fsm.Upcoming{
		{Kind: journal.ActionClearNode, Subject: node, At: s.Now.Add(31 * time.Second), Why: "if pods on it are terminating then"},
		{Kind: journal.ActionPurgeNode, Subject: node, Never: true, Why: "purge_dead_nodes is false"},
	}
	return s
}

func TestStatusLooksAsItShould(t *testing.T) {
	for name, status := range map[string]func() api.Status{
		"running": presentStatus,
		"safe": func() api.Status {
			s := presentStatus()
			s.Journal.SafeMode = &journal.JournalSalvaged{DamagedFile: "/d", Problem: "page 7", Recovered: 1, LostAtLeast: 2}
			s.Journal.Writable, s.Journal.Error = false, "no space left on device"
			s.API.LostAt = began
			s.Operator.DryRun = true
			return s
		},
		"unopened": func() api.Status {
			s := presentStatus()
			s.Journal = api.JournalStatus{Stat: journal.Stat{Path: "/journal.db"}, Unopened: &api.UnopenedJournal{
				Since: began, Problem: "journal could not be verified: signal: killed", NextTry: began.Add(time.Hour),
			}}
			return s
		},
		"outdated": func() api.Status {
			s := presentStatus()
			s.Journal.Outdated = &journal.JournalOutdated{LastSeq: 80, Mirrored: journal.Position{Seq: 120}, MirroredAt: began}
			return s
		},
		"gone": func() api.Status {
			s := presentStatus()
			s.Journal.Outdated = &journal.JournalOutdated{Gone: "j0", Mirrored: journal.Position{Seq: 120}, MirroredAt: began}
			return s
		},
		"emptied": func() api.Status {
			s := presentStatus()
			s.Journal.SafeMode, s.Journal.SafeModeSince = &journal.JournalSalvaged{Problem: "it is empty", DamagedFile: "/d/journal.db.damaged-x"}, began
			return s
		},
		"replaced": func() api.Status {
			s := presentStatus()
			s.Journal.ReplacedAt, s.Mirror = began, "it is of format 2; run EKCO v9"
			s.Journal.AdoptedAt, s.NotMirrored = began, []string{"purge-worker-2-25"}
			s.Journal.Adopted = &journal.JournalAdopted{JournalID: "j3", MirroredAt: began.Add(-time.Hour), Actions: 1, Pauses: 2}
			s.Journal.Replaced = &journal.JournalReplaced{File: "/d/journal.db.of-cluster-c2-x", Problem: "it is journal j2, of cluster c2"}
			return s
		},
		"stopped": func() api.Status {
			s := presentStatus()
			s.Operator.Running, s.Operator.StoppedAt = false, began.Add(time.Minute)
			return s
		},
		"killed": func() api.Status {
			s := presentStatus()
			s.Operator.Running = false
			return s
		},
		"starting": func() api.Status {
			s := presentStatus()
			s.Operator.StartedAt = s.Now.Add(-time.Minute)
			s.Starting = &api.Starting{Since: s.Operator.StartedAt, To: "read the identity of the cluster", Error: "connection refused"}
			s.API.LostAt, s.API.Error = s.Operator.StartedAt, "connection refused"
			s.AsOf = began
			return s
		},
		"command": func() api.Status {
			s := presentStatus()
			s.Operator.Running, s.Operator.Command = false, "purge-node worker-2"
			return s
		},
		"command.starting": func() api.Status {
			s := presentStatus()
			s.Operator.Running, s.Operator.Command = false, "purge-node worker-2"
			s.Starting = &api.Starting{To: "list the nodes"}
			s.AsOf = began
			return s
		},
		"command.ended": func() api.Status {
			s := presentStatus()
			s.Operator = api.OperatorStatus{OperatorState: s.Operator.OperatorState}
			s.Operator.Command, s.Operator.StoppedAt, s.AsOf = "purge-node worker-2", began.Add(time.Minute), began.Add(time.Minute)
			return s
		},
		"command.killed": func() api.Status {
			s := presentStatus()
			s.Operator = api.OperatorStatus{OperatorState: s.Operator.OperatorState}
			s.Operator.Command = "purge-node worker-2"
			return s
		},
		"clock": func() api.Status {
			s := presentStatus()
			s.Clock = api.ClockStatus{APIAhead: journal.Duration(-70 * time.Minute), JumpedAt: s.Now.Add(-time.Minute), Jump: journal.Duration(3 * time.Hour)}
			return s
		},
		"clock.yesterday": func() api.Status {
			s := presentStatus()
			s.Clock = api.ClockStatus{JumpedAt: s.Now.Add(-jumpShown), Jump: journal.Duration(3 * time.Hour)}
			return s
		},
		"empty": func() api.Status { return api.Status{Now: began} },
		"ok": func() api.Status {
			s := presentStatus()
			s.Nodes, s.Actions, s.Refusals, s.Pauses, s.Defects, s.Absent = s.Nodes[:1], nil, nil, nil, nil, nil
			return s
		},
		"lost": lostStatus,
		"lost.alone": func() api.Status {
			s := lostStatus()
			s.Next = s.Next[1:]
			return s
		},
		"brake": func() api.Status {
			s := lostStatus()
			s.Next = []fsm.Upcoming{{
				Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Things: 5, Rule: "StormBrake",
				Why: "5 of 6 nodes are unreachable and max_unknown_nodes (55%) allows 4; EKCO continues when 1 more node is back",
			}}
			s.Refusals = []fsm.Refusal{{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Rule: "StormBrake", Reason: "6 of 6", Since: began}}
			return s
		},
	} {
		var out bytes.Buffer
		present := status()
		api.Judge(&present, vocabulary.Verb)
		if err := Status(&out, present, "table", StatusOptions{Words: vocabulary, Color: name == "safe"}); err != nil {
			t.Fatal(err)
		}
		golden(t, "status."+name, out.Bytes())
	}
}

func TestAnExplanationShowsStepsFactsAndPreflights(t *testing.T) {
	var out bytes.Buffer
	err := Explanation(&out, api.Explanation{
		Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("worker-2", "uid-w2"),
		Plan: journal.Plan{Facts: []byte(`{"node_uid":"uid-w2","addresses":["10.0.0.2"]}`), Steps: []journal.PlannedStep{
			{ID: "delete-node", Irreversible: true, Timeout: journal.Duration(time.Minute), Preflights: []string{"NodeStillGone", "StormBrake"}},
		}},
		Checks: []api.CheckResult{{Preflight: "NodeStillGone", Verdict: actions.VerdictPass}, {Preflight: "StormBrake", Verdict: actions.VerdictWarn, Reason: "4 of 6"}},
	}, "ekco purge-node worker-2", false)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "explanation", out.Bytes())
}

func TestAnExplanationBeginsWithItsVerdict(t *testing.T) {
	check := func(v actions.VerdictKind) api.CheckResult {
		return api.CheckResult{Preflight: "P", Verdict: v, Reason: "r"}
	}
	for want, test := range map[string]struct {
		checks []api.CheckResult
		costs  []string
	}{
		"w2 can be purged now. To do it: ekco x":                          {[]api.CheckResult{check(actions.VerdictPass), check(actions.VerdictUnasked)}, nil},
		"w2 can be purged now; nothing is lost. To do it: ekco x":         {[]api.CheckResult{check(actions.VerdictPass)}, []string{"2 pods move"}},
		"w2 can be purged now; see below what is lost. To do it: ekco x":  {nil, []string{"2 pods move", actions.CostOfLoss + "a volume"}},
		"w2 can be purged now; see below what is lost. To do it: ekco  x": {nil, []string{actions.CostUnknown + "which pods are on it"}},
		"w2 can be purged now, with 1 warning: r (P). To do it: ekco x":   {[]api.CheckResult{check(actions.VerdictWarn), check(actions.VerdictPass)}, []string{"2 pods move"}},
		"w2 can be purged now, with 2 warnings. To do it: ekco x":         {[]api.CheckResult{check(actions.VerdictWarn), check(actions.VerdictWarn)}, nil},
		"w2 cannot be purged yet: it would wait, because r (P)":           {[]api.CheckResult{check(actions.VerdictHold), check(actions.VerdictWarn)}, nil},
		"w2 cannot be purged now: r (P)":                                  {[]api.CheckResult{check(actions.VerdictHold), check(actions.VerdictAbandon), check(actions.VerdictPass)}, nil},
	} {
		var out bytes.Buffer
		e := api.Explanation{Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w2", "u2"), Checks: test.checks, Costs: test.costs}
		if err := Explanation(&out, e, "ekco x", false); err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(out.String(), "\n"); first != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("it says %q, want %q", first, want)
		}
		if strings.Contains(out.String(), string(actions.VerdictUnasked)) {
			t.Errorf("a check that runs later is shown as\n%s", out.String())
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	if _, err := NewHistory(nil, "xml", Options{Words: vocabulary}); err == nil {
		t.Error("history took xml")
	}
	if err := Status(nil, api.Status{}, "xml", StatusOptions{Words: vocabulary}); err == nil {
		t.Error("status took xml")
	}
}
