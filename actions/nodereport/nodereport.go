// Package nodereport runs a program on a node and records the program's report.
//
// Data that cannot be read is part of the outcome: the action succeeds even if the node is down, and reports that. The
// report is in the outputs of the step, with at most 12 KiB. The data of the Node object is in the facts of the plan.
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

// Does is the Does of the step.
const Does = "report"

// Limit is the timeout of the program. The program ends before the timeout of its pod.
const Limit = 30 * time.Second

// Dependencies has the dependencies of the action.
type Dependencies struct {
	Tasks   *tasks.Tasks
	Objects kube.Objects
	// Image is the image that has EKCO. Command has the arguments for the report.
	Image   string
	Command []string
}

// New returns the action.
func New(parts Dependencies) actions.Definition {
	work := hosttask.Work{Tasks: parts.Tasks, Does: Does, Partial: true, Read: read}
	return actions.Definition{
		Kind: journal.ActionReportNode, Noun: "report", Expendable: true,
		Plan: func(ctx context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
			node, err := parts.readNode(ctx, record.Subject)
			if err != nil {
				return journal.Plan{}, err
			}
			if plan.Facts, err = json.Marshal(node); err != nil {
				return journal.Plan{}, fmt.Errorf("record Node %s: %w", record.Subject.Name, err)
			}
			_, _, err = work.Plan(&plan, parts.task(record.Subject), journal.PlannedStep{Domains: actions.NoDomains})
			return plan, err
		},
		Steps: work.Steps(),
	}
}

func (p Dependencies) task(node journal.Subject) tasks.Task {
	return tasks.Task{
		Name: "node-report", Node: node.Name, NodeUID: node.UID, Image: p.Image, Args: p.Command,
		Paths: nodereport.Paths(), Limit: journal.Duration(Limit),
	}
}

// readNode reads the Node object. If the node is gone or was replaced, it returns an empty result, and the step reports
// the reason.
func (p Dependencies) readNode(ctx context.Context, subject journal.Subject) (nodereport.Node, error) {
	object, err := p.Objects.ReadObject(ctx, kube.Ref{Version: "v1", Resource: "nodes", Name: subject.Name})
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nodereport.Node{}, nil
	case err != nil:
		return nodereport.Node{}, fmt.Errorf("read Node %s: %w", subject.Name, kube.NamePermission(err, "get", "nodes"))
	}
	node, uid, err := nodereport.NodeOf(object)
	if err != nil || uid != subject.UID {
		return nodereport.Node{}, err
	}
	return node, nil
}

// read checks and returns the program's result.
func read(result json.RawMessage) (json.RawMessage, error) {
	_, err := nodereport.Of(result)
	return result, err
}

// Report is the report of a node.
type Report struct {
	nodereport.Node
	// Host is the program's report; nil if Missing has the reason why there is none.
	Host    *nodereport.Report
	Missing string
}

// Of decodes the report from the facts of a plan and the outputs of its step. outputs may be empty.
func Of(facts, outputs json.RawMessage) (report Report, err error) {
	if len(facts) > 0 {
		if err := json.Unmarshal(facts, &report.Node); err != nil {
			return Report{}, fmt.Errorf("read the recorded Node: %w", err)
		}
	}
	if len(outputs) == 0 {
		return report, nil
	}
	var outcome hosttask.Outcome
	if err := json.Unmarshal(outputs, &outcome); err != nil {
		return Report{}, fmt.Errorf("read the outcome of the report: %w", err)
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
