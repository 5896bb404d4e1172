package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

type fakeHealth []string

func (f fakeHealth) Unready(context.Context) []string { return f }

func serveNetwork(t *testing.T, health Health, metrics *Metrics) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeHTTP(ctx, listener, health, metrics.Gatherer(), quiet()) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func get(t *testing.T, method, url, accept string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestHealthzIsAliveAndEmptyEvenWhenUnready(t *testing.T) {
	address := serveNetwork(t, fakeHealth{"x"}, NewMetrics())
	if status, body := get(t, "GET", address+"/healthz", ""); status != 200 || body != "" {
		t.Errorf("got %d %q, want 200 and nothing", status, body)
	}
}

func TestReadyzSaysWhyNot(t *testing.T) {
	ready := serveNetwork(t, fakeHealth{}, NewMetrics())
	if status, body := get(t, "GET", ready+"/readyz", ""); status != 200 || body != "ready\n" {
		t.Errorf("got %d %q", status, body)
	}
	unready := serveNetwork(t, fakeHealth{"the loop sleeps", "the disk is full"}, NewMetrics())
	if status, body := get(t, "GET", unready+"/readyz", ""); status != 503 || body != "not ready: the loop sleeps\nnot ready: the disk is full\n" {
		t.Errorf("got %d %q", status, body)
	}
	status, body := get(t, "GET", unready+"/readyz", "application/json")
	var answer struct {
		Ready   bool
		Reasons []string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 503 || answer.Ready || len(answer.Reasons) != 2 {
		t.Errorf("got %d %q (%v)", status, body, err)
	}
}

func TestNothingElseIsServedOnTheNetwork(t *testing.T) {
	address := serveNetwork(t, fakeHealth{}, NewMetrics())
	for _, path := range []string{"/", "/v1/status", "/v1/request", "/v1/accept", "/debug/pprof/"} {
		for _, method := range []string{"GET", "POST"} {
			if status, _ := get(t, method, address+path, ""); status != 404 {
				t.Errorf("%s %s: got %d, want 404", method, path, status)
			}
		}
	}
}

// busyMetrics has something to say in every family.
func busyMetrics(t *testing.T) *Metrics {
	t.Helper()
	m := NewMetrics()
	m.MayHold(slices.Values([]string{"CephAnswers"}))
	m.Attend(func(context.Context) (Status, error) { return Status{}, nil }, nil)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	seq := uint64(0)
	fold := func(after time.Duration, action string, payload any, eventType journal.Type) {
		seq++
		body, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		m.Folded(journal.Event{
			Seq: seq, Time: at.Add(after), Type: eventType, Version: 1, Action: action,
			Subject: journal.NodeSubject("w", "u"), Payload: body,
		}.Decoded())
	}
	fold(0, "purge-w-1", journal.ActionRequested{Kind: journal.ActionPurgeNode}, journal.TypeActionRequested)
	fold(0, "purge-w-1", planOf("delete-pod a/b", "delete-pod"), journal.TypeActionPlanned)
	fold(0, "purge-w-1", journal.StepStarted{Step: "delete-pod a/b", Attempt: 1}, journal.TypeStepStarted)
	fold(0, "purge-w-1", journal.StepFailed{Step: "delete-pod a/b", Attempt: 1}, journal.TypeStepFailed)
	fold(0, "purge-w-1", journal.StepStarted{Step: "delete-pod a/b", Attempt: 2}, journal.TypeStepStarted)
	fold(2*time.Second, "purge-w-1", journal.StepDone{Step: "delete-pod a/b", Attempt: 2}, journal.TypeStepDone)
	fold(3*time.Second, "purge-w-1", journal.ActionEnded{Outcome: journal.OutcomeDone}, journal.TypeActionEnded)
	m.Appended(3, time.Millisecond, nil)
	m.Appended(0, time.Millisecond, errors.New("disk full"))
	m.JournalSize(4096)
	m.Observed("nodes", 2*time.Second)
	m.MirrorFailed(errors.New("conflict"))
	m.Requested("get", "nodes", 200)
	m.CephRan("osd purge", time.Second, nil)
	m.EtcdAnswered("members", time.Second, nil)
	state := fsm.NewState(fsmnode.Capability())
	state.Seq = seq
	state.Add(fsmnode.Machine, journal.NodeSubject("w", "u"), fsmnode.Unknown, time.Time{})
	state.Actions["a"] = &journal.ActionRecord{
		ID: "a", Kind: journal.ActionClearNode, Status: fsm.Held,
		Holds: map[string]journal.ActionHeld{"": {Preflight: "StormBrake"}},
	}
	state.Refusals = []fsm.Refusal{{Kind: journal.ActionPurgeNode, Rule: "Paused"}}
	m.State(fsm.NewWorld(state, fsm.Policy{}, time.Now()))
	return m
}

func planOf(step, does string) journal.ActionPlanned {
	return journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: does}}}}
}

// TestStepsAreMeasuredByWhatThePlanSaysThatTheyDo: what a step is called is for people.
func TestStepsAreMeasuredByWhatThePlanSaysThatTheyDo(t *testing.T) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	steps := []journal.PlannedStep{{ID: "1st of two", Does: "move-data"}}
	undo := []journal.PlannedStep{{ID: "back: 1st", Does: "move-back", Undoes: "1st of two"}}
	plan := journal.Plan{Steps: steps, Undo: undo}
	record := journal.ActionRecord{ID: "a", Kind: journal.ActionPurgeNode, Planned: true, Plan: plan}
	for name, tell := range map[string]func(m *Metrics, fold func(journal.Payload)){
		"planned": func(_ *Metrics, fold func(journal.Payload)) { fold(journal.ActionPlanned{Plan: plan}) },
		"adopted": func(_ *Metrics, fold func(journal.Payload)) { fold(journal.ActionAdopted{Record: record}) },
		"adopted before it was planned": func(_ *Metrics, fold func(journal.Payload)) {
			fold(journal.ActionAdopted{Record: journal.ActionRecord{ID: "a", Kind: journal.ActionPurgeNode}})
			fold(journal.ActionPlanned{Plan: plan})
		},
		"open when EKCO started": func(m *Metrics, _ func(journal.Payload)) {
			state := fsm.NewState(fsmnode.Capability())
			state.Actions["a"] = &record
			m.State(fsm.NewWorld(state, fsm.Policy{}, time.Now()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := NewMetrics(), at
			fold := func(payload journal.Payload) {
				body, err := json.Marshal(payload)
				if err != nil {
					t.Fatal(err)
				}
				m.Folded(journal.Event{Seq: 1, Time: now, Type: journal.TypeOf(payload), Version: 1, Action: "a", Payload: body}.Decoded())
				now = now.Add(time.Second)
			}
			tell(m, fold)
			for _, step := range []string{"1st of two", "back: 1st", "of no plan"} {
				fold(journal.StepStarted{Step: step, Attempt: 1})
				fold(journal.StepFailed{Step: step, Attempt: 1})
				fold(journal.StepDone{Step: step, Attempt: 2})
			}
			fold(journal.ActionEnded{Outcome: journal.OutcomeDone})
			fold(journal.StepFailed{Step: "1st of two", Attempt: 3})
			fold(journal.StepFailed{Step: "1st of two", Attempt: 4, CutShort: true}) // which is no failure
			_, body := get(t, "GET", serveNetwork(t, fakeHealth{}, m)+"/metrics", "")
			for _, line := range []string{
				`ekco_step_failures_total{step="move-data"} 1`, `ekco_step_failures_total{step="move-back"} 1`, `ekco_step_failures_total{step="unknown"} 2`,
				`ekco_step_duration_seconds_sum{step="move-data"} 2`, `ekco_step_duration_seconds_sum{step="move-back"} 2`,
			} {
				if !strings.Contains(body, line) {
					t.Errorf("/metrics has no %q", line)
				}
			}
			if strings.Contains(body, `step="1st"`) {
				t.Error("a step is measured by a part of its id")
			}
		})
	}
}

func TestAClockThatJumpsIsCountedAndDoesNotCountAsTheTimeOfAStep(t *testing.T) {
	m := NewMetrics()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for i, said := range []struct {
		after     time.Duration
		eventType journal.Type
		payload   string
	}{
		{0, journal.TypeActionPlanned, `{"plan":{"steps":[{"id":"delete-node","does":"delete-node"}]}}`},
		{0, journal.TypeStepStarted, `{"step":"delete-node","attempt":1}`},
		{3*time.Hour + time.Second, journal.TypeClockJumped, `{"by":"3h0m0s"}`},
		{3*time.Hour + 2*time.Second, journal.TypeStepDone, `{"step":"delete-node","attempt":1}`},
	} {
		m.Folded(journal.Event{Seq: uint64(i + 1), Time: at.Add(said.after), Type: said.eventType, Version: 1, Action: "a", Payload: []byte(said.payload)}.Decoded())
	}
	state, skew := fsm.NewState(fsmnode.Capability()), journal.Duration(-70*time.Minute)
	state.Clock.Skew = &skew
	m.State(fsm.NewWorld(state, fsm.Policy{}, time.Now()))
	_, body := get(t, "GET", serveNetwork(t, fakeHealth{}, m)+"/metrics", "")
	for _, line := range []string{"ekco_clock_jumps_total 1", "ekco_clock_skew_seconds -4200", `ekco_step_duration_seconds_sum{step="delete-node"} 2`} {
		if !strings.Contains(body, line) {
			t.Errorf("/metrics has no %q", line)
		}
	}
}

func TestMetricsCountWhatHappens(t *testing.T) {
	m := busyMetrics(t)
	const want = `
# HELP ekco_actions_total Actions that ended, by kind and outcome.
# TYPE ekco_actions_total counter
ekco_actions_total{kind="purge-node",outcome="done"} 1
# HELP ekco_journal_append_failures_total Appends that failed.
# TYPE ekco_journal_append_failures_total counter
ekco_journal_append_failures_total 1
# HELP ekco_journal_bytes Size of the journal's file.
# TYPE ekco_journal_bytes gauge
ekco_journal_bytes 4096
# HELP ekco_journal_events_total Events appended since the start.
# TYPE ekco_journal_events_total counter
ekco_journal_events_total 3
# HELP ekco_journal_sequence Sequence number of the last event.
# TYPE ekco_journal_sequence gauge
ekco_journal_sequence 7
# HELP ekco_machines Machines by kind and state.
# TYPE ekco_machines gauge
ekco_machines{kind="node",state="Cleared"} 0
ekco_machines{kind="node",state="Clearing"} 0
ekco_machines{kind="node",state="Gone"} 0
ekco_machines{kind="node",state="Healthy"} 0
ekco_machines{kind="node",state="Purged"} 0
ekco_machines{kind="node",state="Purging"} 0
ekco_machines{kind="node",state="Unknown"} 1
# HELP ekco_mirror_failures_total Failed writes of the mirror of open actions.
# TYPE ekco_mirror_failures_total counter
ekco_mirror_failures_total 1
# HELP ekco_open_actions Open actions by kind and status.
# TYPE ekco_open_actions gauge
ekco_open_actions{kind="clear-node",status="Cancelling"} 0
ekco_open_actions{kind="clear-node",status="Held"} 1
ekco_open_actions{kind="clear-node",status="Requested"} 0
ekco_open_actions{kind="clear-node",status="Running"} 0
ekco_open_actions{kind="clear-node",status="Stalled"} 0
ekco_open_actions{kind="purge-node",status="Cancelling"} 0
ekco_open_actions{kind="purge-node",status="Held"} 0
ekco_open_actions{kind="purge-node",status="Requested"} 0
ekco_open_actions{kind="purge-node",status="Running"} 0
ekco_open_actions{kind="purge-node",status="Stalled"} 0
# HELP ekco_step_failures_total Failed attempts, by what the step does.
# TYPE ekco_step_failures_total counter
ekco_step_failures_total{step="delete-pod"} 1
`
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "ekco_actions_total",
		"ekco_journal_append_failures_total", "ekco_journal_bytes", "ekco_journal_events_total", "ekco_journal_sequence",
		"ekco_machines", "ekco_mirror_failures_total", "ekco_open_actions", "ekco_step_failures_total"); err != nil {
		t.Error(err)
	}
	_, body := get(t, "GET", serveNetwork(t, fakeHealth{}, m)+"/metrics", "")
	for _, line := range []string{
		`ekco_holds{preflight="StormBrake"} 1`, `ekco_holds{preflight="Paused"} 0`, `ekco_holds{preflight="Answer"} 0`, `ekco_holds{preflight="CephAnswers"} 0`,
		`ekco_step_duration_seconds_sum{step="delete-pod"} 2`, `ekco_observation_lag_seconds_count{resource="nodes"} 1`,
		`ekco_observation_lag_seconds_sum{resource="nodes"} 2`, "go_goroutines", "ekco_build_info{",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("/metrics has no %q", line)
		}
	}
}

func TestKubernetesRequestsAreCounted(t *testing.T) {
	m := NewMetrics()
	for _, code := range []int{200, 200, 403, 0} {
		m.Requested("get", "nodes", code)
	}
	for code, want := range map[string]float64{"200": 2, "403": 1, "error": 1} {
		if got := testutil.ToFloat64(m.requests.WithLabelValues("get", "nodes", code)); got != want {
			t.Errorf("code %s: counted %v, want %v", code, got, want)
		}
	}
}

func TestCallsOfCephAndEtcdAreTimedByResult(t *testing.T) {
	m := NewMetrics()
	m.CephRan("osd purge", 2*time.Second, nil)
	m.CephRan("osd purge", time.Second, errors.New("no"))
	m.EtcdAnswered("members", time.Second, nil)
	_, body := get(t, "GET", serveNetwork(t, fakeHealth{}, m)+"/metrics", "")
	for _, line := range []string{
		`ekco_ceph_command_duration_seconds_sum{command="osd purge",result="ok"} 2`,
		`ekco_ceph_command_duration_seconds_sum{command="osd purge",result="error"} 1`,
		`ekco_etcd_call_duration_seconds_count{call="members",result="ok"} 1`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("/metrics has no %q", line)
		}
	}
}
