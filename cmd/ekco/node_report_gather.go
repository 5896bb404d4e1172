package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	actionsreport "github.com/replicatedhq/ekco/actions/nodereport"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/nodereport"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// reportsOpen is how many reports are requested at a time: enough to use all slots, and few, since open actions are
// in the mirror.
const reportsOpen = 2 * hosttask.AtOnce

// reporting is the report of a node while it is gathered.
type reporting struct {
	view.NodeReport
	// facts and outputs are those that its action has recorded.
	facts, outputs json.RawMessage
	over           bool
}

// lacks ends it without the facts of the host.
func (r *reporting) lacks(why string) {
	r.Missing = append(r.Missing, nodereport.Missing{What: "report", Why: why})
	r.over = true
}

// reporter requests reports of nodes, and gathers them.
type reporter struct {
	app   *app
	flags nodeReportFlags
	conn  *connection
	actor string
	// all are in the order of the output; the first asked of them were requested.
	all   []*reporting
	asked int
	// byAction has the requested ones that are not over.
	byAction map[string]*reporting
	// last is the last event that was read.
	last  uint64
	began time.Time
	sign  *signOfLife
	// regains counts the reconnects to an operator.
	regains regains
}

// gather returns the reports when all are over, or when it cannot wait for them any longer.
func (r *reporter) gather(ctx context.Context) view.NodeReports {
	defer r.sign.clear()
	for {
		err := r.stream(ctx)
		if err == nil {
			return r.reports("")
		}
		if ctx.Err() == nil {
			err = r.regain(ctx, err)
		}
		switch {
		case ctx.Err() != nil:
			return r.reports("interrupted before the report was complete")
		case err != nil:
			return r.reports(err.Error())
		}
	}
}

// reports returns all reports; why is the reason for those that are not over.
func (r *reporter) reports(why string) view.NodeReports {
	reports := view.NodeReports{Complete: true, Nodes: make([]view.NodeReport, 0, len(r.all))}
	for _, report := range r.all {
		if !report.over {
			report.fill()
			report.lacks(why + onGoing(report.Action))
		}
		reports.Complete = reports.Complete && len(report.Missing) == 0
		reports.Nodes = append(reports.Nodes, report.NodeReport)
	}
	return reports
}

// onGoing says where to find a requested action.
func onGoing(action string) string {
	if action == "" {
		return ""
	}
	return fmt.Sprintf("; the operator continues it: ekco history --action %s", action)
}

// regain waits for an operator that continues.
func (r *reporter) regain(ctx context.Context, lost error) error {
	r.warn("lost the operator: %v; waiting for it or the next one", lost)
	back, err := r.regains.await(ctx, r.last+uint64(r.asked), lost, r.conn.again)
	if err != nil {
		return err
	}
	r.conn.close()
	r.conn.Backend, r.conn.close = back, back.Close
	r.warn("an operator answers again")
	return nil
}

// stream requests reports and takes their events, until all are over.
func (r *reporter) stream(ctx context.Context) error {
	events, stop := readEvents(ctx, r.conn, journal.Query{After: r.last, Types: reportEvents})
	defer stop()
	tick := time.NewTicker(signAgain)
	defer tick.Stop()
	for {
		if err := r.ask(ctx); err != nil {
			return err
		}
		if len(r.byAction) == 0 {
			return nil
		}
		select {
		case next := <-events:
			if next.err != nil {
				return next.err
			}
			r.last = max(r.last, next.event.Seq)
			r.take(next.event)
		case <-tick.C:
			r.sign.show(fmt.Sprintf("%8s  … %d of %s", words.Span(r.elapsed().Round(time.Second)), r.asked-len(r.byAction), words.Count(len(r.all), "node")))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportEvents are the types of events that are needed for a report.
var reportEvents = []journal.Type{
	journal.TypeActionPlanned, journal.TypeActionHeld, journal.TypeActionStalled, journal.TypeActionEnded,
	journal.TypeStepStarted, journal.TypeStepDone, journal.TypeStepFailed,
}

// ask requests reports, up to reportsOpen at a time.
func (r *reporter) ask(ctx context.Context) error {
	for r.asked < len(r.all) && len(r.byAction) < reportsOpen {
		report := r.all[r.asked]
		admitted, err := r.conn.Request(ctx, fsm.Request{
			Kind: journal.ActionReportNode, Name: report.Node, Actor: r.actor, Reason: r.flags.reason,
		})
		switch {
		case err != nil && !isAnswer(err):
			return err
		case err != nil:
			report.lacks(err.Error())
		default:
			report.Action = admitted.Action
			r.byAction[admitted.Action] = report
		}
		r.asked++
		if err == nil && admitted.Resumed {
			if err := r.catchUp(ctx, admitted.Action); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAnswer reports whether an error is an answer of the operator, and not a failure to get one.
func isAnswer(err error) bool {
	for _, answer := range []error{
		api.ErrRefused, api.ErrNotFound, api.ErrInvalid, api.ErrForbidden, fsm.ErrRefused, fsm.ErrUnknown, journal.ErrUnwritable,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// catchUp takes the past events of an action that was already open.
func (r *reporter) catchUp(ctx context.Context, action string) error {
	for event, err := range r.conn.Events(ctx, journal.Query{Action: action, Types: reportEvents}, false) {
		if err != nil {
			return err
		}
		r.take(event)
	}
	return nil
}

// take processes an event of one of the reports.
func (r *reporter) take(event journal.Event) {
	report := r.byAction[event.Action]
	if report == nil {
		return
	}
	decoded := event.Decoded()
	switch p := decoded.Body.(type) {
	case *journal.ActionPlanned:
		report.facts = p.Plan.Facts
	case *journal.StepDone:
		if strings.HasPrefix(p.Step, actionsreport.Does+" ") {
			report.outputs = p.Outputs
		}
	case *journal.ActionStalled:
		report.fill()
		r.over(report, event, fmt.Sprintf("%s; after fixing this: ekco retry %s", p.Reason, event.Action))
	case *journal.ActionEnded:
		report.fill()
		r.over(report, event, unlooked(p))
	}
	if r.flags.follow {
		r.warn("%8s  %s", words.Span(r.elapsed()), view.Sentence(r.app.words, decoded))
	}
}

// unlooked says why an ended action has no result.
func unlooked(ended *journal.ActionEnded) string {
	if ended.Outcome == journal.OutcomeDryRun {
		return "dry_run is on in the operator's settings, so it runs nothing on nodes"
	}
	return "the action ended " + words.Ended(ended.Outcome, ended.Reason)
}

// over ends a report; why is the reason if it has no result and no reason yet.
func (r *reporter) over(report *reporting, event journal.Event, why string) {
	delete(r.byAction, event.Action)
	report.At, report.over = event.Time, true
	if !report.Looked && len(report.Missing) == 0 {
		report.lacks(why)
	}
}

// fill takes what is recorded so far.
func (r *reporting) fill() {
	found, err := actionsreport.Of(r.facts, r.outputs)
	if err != nil {
		r.lacks(err.Error())
		return
	}
	r.Kernel, r.Kubelet, r.ContainerRuntime, r.OSImage = found.Kernel, found.Kubelet, found.ContainerRuntime, found.OSImage
	if host := found.Host; host != nil {
		r.Looked, r.Kernel, r.ClockAhead, r.Disks = true, cmp.Or(host.Kernel, found.Kernel), host.ClockAhead, host.Disks
		r.Certificates, r.MoreCertificates, r.Ceph, r.MoreCeph = host.Certificates, host.MoreCertificates, host.Ceph, host.MoreCeph
		r.Missing = append(r.Missing, host.Missing...)
	}
	if found.Missing != "" {
		r.lacks(found.Missing)
	}
}

func (r *reporter) elapsed() time.Duration {
	return r.app.now().Sub(r.began).Round(100 * time.Millisecond)
}

// warn prints a line on standard error.
func (r *reporter) warn(format string, args ...any) {
	_ = r.sign.away(func() error {
		_, err := fmt.Fprintln(r.app.stderr, view.Clean(fmt.Sprintf(format, args...)))
		return err
	})
}
