package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestAMetricSaysWhetherAPersonIsNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		status Status
		err    error
		want   string
	}{
		"nobody is":            {Status{Operator: OperatorStatus{Running: true}, Journal: JournalStatus{Writable: true}}, nil, "0"},
		"something stalled":    {Status{Operator: OperatorStatus{Running: true}, Actions: []journal.ActionRecord{{Stalled: &journal.ActionStalled{}}}}, nil, "1"},
		"EKCO does not answer": {Status{}, errors.New("busy"), "1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics()
			m.Attend(func(context.Context) (Status, error) { return test.status, test.err }, func(k journal.ActionKind) string { return string(k) })
			want := "# HELP ekco_needs_attention 1 while something needs a person; the first line of \"ekco status\" says what.\n" +
				"# TYPE ekco_needs_attention gauge\nekco_needs_attention " + test.want + "\n"
			if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "ekco_needs_attention"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAScrapeDoesNotWaitForItself(t *testing.T) {
	m := NewMetrics()
	state := fsm.NewState(fsmnode.Capability())
	// The loop hands over its state before it answers who asks for a status.
	m.Attend(func(context.Context) (Status, error) {
		m.State(fsm.NewWorld(state, fsm.Policy{}, time.Now()))
		return Status{}, nil
	}, nil)
	if _, err := m.Gatherer().Gather(); err != nil {
		t.Error(err)
	}
}

func TestWhatCanBeCountedIsCountedFromTheStart(t *testing.T) {
	m := NewMetrics()
	m.State(fsm.NewWorld(fsm.NewState(fsmnode.Capability()), fsm.Policy{}, time.Now()))
	for want, vector := range map[string]float64{
		"machines":     testutil.ToFloat64(m.machines.WithLabelValues("node", "Unknown")),
		"open actions": testutil.ToFloat64(m.openActions.WithLabelValues("purge-node", "Stalled")),
		"api":          testutil.ToFloat64(m.apiUp),
	} {
		if vector != 0 {
			t.Errorf("%s: got %v, want 0", want, vector)
		}
	}
	if got, err := testutil.GatherAndCount(m.Gatherer(), "ekco_open_actions"); err != nil || got != 2*len(fsm.ActionStatuses()) {
		t.Errorf("ekco_open_actions: %d series (%v), want one for each kind and status", got, err)
	}
	if got, err := testutil.GatherAndCount(m.Gatherer(), "ekco_refusals"); err != nil || got < 10 {
		t.Errorf("ekco_refusals: %d series (%v), want one for each kind and rule", got, err)
	}
}
