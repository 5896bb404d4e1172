// Package nodereport has a program look at a node, and keeps what it found.
//
// What cannot be had is part of the outcome: an action ends well also where its node is away,
// and then says so. The report of a node is in the outcome of its step, 12 KiB at most, and what
// the Node object says in the facts of the plan.
package nodereport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/hosttask"
	tasks "github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/nodereport"
	"github.com/replicatedhq/ekco/journal"
)

// Does is how plans name the step that looks.
const Does = "report"

// Limit is how long the program may look. It ends by itself before its pod is ended.
const Limit = 30 * time.Second

// Parts are what reports are made with.
type Parts struct {
	Tasks   *tasks.Tasks
	Objects kube.Objects
	// Image has EKCO, Command is how it is told to look.
	Image   string
	Command []string
}

// New returns the action.
func New(parts Parts) actions.Definition {
	work := hosttask.Work{Tasks: parts.Tasks, Does: Does, Partial: true, Read: read}
	return actions.Definition{
		Kind: journal.ActionReportNode, Noun: "report", Expendable: true,
		Plan: func(ctx context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
			node, err := parts.node(ctx, record.Subject)
			if err != nil {
				return journal.Plan{}, err
			}
			if plan.Facts, err = json.Marshal(node); err != nil {
				return journal.Plan{}, fmt.Errorf("capture what Node %s says: %w", record.Subject.Name, err)
			}
			_, _, err = work.Plan(&plan, parts.task(record.Subject), journal.PlannedStep{Domains: actions.NoDomains})
			return plan, err
		},
		Steps: work.Steps(),
	}
}

func (p Parts) task(node journal.Subject) tasks.Task {
	return tasks.Task{
		Name: "node-report", Node: node.Name, NodeUID: node.UID, Image: p.Image, Args: p.Command,
		Paths: nodereport.Paths(), Limit: journal.Duration(Limit),
	}
}

// node reads what the Node object says. One that is gone, or another's by now, says nothing:
// the step finds that out.
func (p Parts) node(ctx context.Context, subject journal.Subject) (nodereport.Node, error) {
	object, err := p.Objects.ReadObject(ctx, kube.Ref{Version: "v1", Resource: "nodes", Name: subject.Name})
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nodereport.Node{}, nil
	case err != nil:
		return nodereport.Node{}, fmt.Errorf("read Node %s: %w", subject.Name, kube.Lacking(err, "get", "nodes"))
	}
	node, uid, err := nodereport.NodeOf(object)
	if err != nil || uid != subject.UID {
		return nodereport.Node{}, err
	}
	return node, nil
}

// read checks what the program found.
func read(result json.RawMessage) (json.RawMessage, error) {
	_, err := nodereport.Of(result)
	return result, err
}

// Report is what is known of a node.
type Report struct {
	nodereport.Node
	// Host is what the program found, nil if Missing says why nothing.
	Host    *nodereport.Report
	Missing string
}

// Of reads the report from the facts of a plan and the outputs of its step, as far as there
// are any.
func Of(facts, outputs json.RawMessage) (report Report, err error) {
	if len(facts) > 0 {
		if err := json.Unmarshal(facts, &report.Node); err != nil {
			return Report{}, fmt.Errorf("read what was captured of the Node: %w", err)
		}
	}
	if len(outputs) == 0 {
		return report, nil
	}
	var outcome hosttask.Outcome
	if err := json.Unmarshal(outputs, &outcome); err != nil {
		return Report{}, fmt.Errorf("read what came of the report: %w", err)
	}
	report.Missing = cmp.Or(outcome.Missing, outcome.Left)
	if len(outcome.Result) > 0 {
		host, err := nodereport.Of(outcome.Result)
		if err != nil {
			return Report{}, err
		}
		report.Host = &host
	}
	return report, nil
}
