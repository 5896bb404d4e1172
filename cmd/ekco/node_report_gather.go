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

// maxOpenReports is the maximum number of open reports: enough for all host tasks that run at a time, and few because
// open actions need space in the mirror.
const maxOpenReports = 2 * hosttask.AtOnce

// nodeReportState is the unfinished report of one node.
type nodeReportState struct {
	view.NodeReport
	// facts and outputs are the recorded facts and outputs of the report's action.
	facts, outputs json.RawMessage
	over           bool
}

// endWithout ends the report without the facts of the host.
func (r *nodeReportState) endWithout(why string) {
	r.Missing = append(r.Missing, nodereport.Missing{What: "report", Why: why})
	r.over = true
}

// reporter requests reports of nodes, and collects them.
type reporter struct {
	app   *app
	flags nodeReportFlags
	conn  *connection
	actor string
	// all has the reports in the order of the output. asked is the number of requested reports: they come first in all.
	all   []*nodeReportState
	asked int
	// byAction has the requested reports that have not ended, by action id.
	byAction map[string]*nodeReportState
	// last is the last event that was read.
	last       uint64
	began      time.Time
	sign       *statusLine
	reconnects reconnectLimit
}

// collectReports returns the reports when all have ended, or when it cannot wait any longer.
func (r *reporter) collectReports(ctx context.Context) view.NodeReports {
	defer r.sign.clear()
	for {
		err := r.streamReports(ctx)
		if err == nil {
			return r.reports("")
		}
		if ctx.Err() == nil {
			err = r.reconnect(ctx, err)
		}
		switch {
		case ctx.Err() != nil:
			return r.reports("interrupted before the report was complete")
		case err != nil:
			return r.reports(err.Error())
		}
	}
}

// reports returns all reports; why becomes the reason of unfinished reports.
func (r *reporter) reports(why string) view.NodeReports {
	reports := view.NodeReports{Complete: true, Nodes: make([]view.NodeReport, 0, len(r.all))}
	for _, report := range r.all {
		if !report.over {
			report.copyRecorded()
			report.endWithout(why + openActionText(report.Action))
		}
		reports.Complete = reports.Complete && len(report.Missing) == 0
		reports.Nodes = append(reports.Nodes, report.NodeReport)
	}
	return reports
}

// openActionText returns a text that says where to find a requested action.
func openActionText(action string) string {
	if action == "" {
		return ""
	}
	return fmt.Sprintf("; the operator continues it: ekco history --action %s", action)
}

// reconnect reconnects to an operator that continues the work.
func (r *reporter) reconnect(ctx context.Context, lost error) error {
	r.warn("lost the connection to the operator: %v; waiting until it, or an operator that replaces it, answers", lost)
	back, err := r.reconnects.await(ctx, r.last+uint64(r.asked), lost, r.conn.redial)
	if err != nil {
		return err
	}
	r.conn.close()
	r.conn.Backend, r.conn.close = back, back.Close
	r.warn("an operator answers again")
	return nil
}

// streamReports requests reports and handles their events, until all reports have ended.
func (r *reporter) streamReports(ctx context.Context) error {
	events, stop := readEvents(ctx, r.conn, journal.Query{After: r.last, Types: reportEvents})
	defer stop()
	tick := time.NewTicker(signInterval)
	defer tick.Stop()
	for {
		if err := r.requestReports(ctx); err != nil {
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
			r.handleEvent(next.event)
		case <-tick.C:
			r.sign.show(fmt.Sprintf("%8s  … %d of %s", words.Span(r.elapsed().Round(time.Second)), r.asked-len(r.byAction), words.Count(len(r.all), "node")))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportEvents lists the types of events that a report needs.
var reportEvents = []journal.Type{
	journal.TypeActionPlanned, journal.TypeActionHeld, journal.TypeActionStalled, journal.TypeActionEnded,
	journal.TypeStepStarted, journal.TypeStepDone, journal.TypeStepFailed,
}

// requestReports requests reports, so that at most maxOpenReports are open at a time.
func (r *reporter) requestReports(ctx context.Context) error {
	for r.asked < len(r.all) && len(r.byAction) < maxOpenReports {
		report := r.all[r.asked]
		admitted, err := r.conn.Request(ctx, fsm.Request{
			Kind: journal.ActionReportNode, Name: report.Node, Actor: r.actor, Reason: r.flags.reason,
		})
		switch {
		case err != nil && !isAnswer(err):
			return err
		case err != nil:
			report.endWithout(err.Error())
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

// isAnswer reports whether an error is an answer from the operator, and not a failed connection.
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

// catchUp handles the earlier events of an action that was already open.
func (r *reporter) catchUp(ctx context.Context, action string) error {
	for event, err := range r.conn.Events(ctx, journal.Query{Action: action, Types: reportEvents}, false) {
		if err != nil {
			return err
		}
		r.handleEvent(event)
	}
	return nil
}

func (r *reporter) handleEvent(event journal.Event) {
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
		report.copyRecorded()
		r.endReport(report, event, fmt.Sprintf("%s; after fixing this: ekco retry %s", p.Reason, event.Action))
	case *journal.ActionEnded:
		report.copyRecorded()
		r.endReport(report, event, noResultReason(p))
	}
	if r.flags.follow {
		r.warn("%8s  %s", words.Span(r.elapsed()), view.Sentence(r.app.words, decoded))
	}
}

// noResultReason returns the reason why an ended action has no result.
func noResultReason(ended *journal.ActionEnded) string {
	if ended.Outcome == journal.OutcomeDryRun {
		return "dry_run is on in the operator's settings, so it runs nothing on nodes"
	}
	return "the action ended " + words.Ended(ended.Outcome, ended.Reason)
}

// endReport ends a report. why is its reason if the report has no result and no other reason.
func (r *reporter) endReport(report *nodeReportState, event journal.Event, why string) {
	delete(r.byAction, event.Action)
	report.At, report.over = event.Time, true
	if !report.Looked && len(report.Missing) == 0 {
		report.endWithout(why)
	}
}

// copyRecorded copies the recorded facts and outputs into the report.
func (r *nodeReportState) copyRecorded() {
	found, err := actionsreport.Of(r.facts, r.outputs)
	if err != nil {
		r.endWithout(err.Error())
		return
	}
	r.Kernel, r.Kubelet, r.ContainerRuntime, r.OSImage = found.Kernel, found.Kubelet, found.ContainerRuntime, found.OSImage
	if host := found.Host; host != nil {
		r.Looked, r.Kernel, r.ClockAhead, r.Disks = true, cmp.Or(host.Kernel, found.Kernel), host.ClockAhead, host.Disks
		r.Certificates, r.OmittedCertificates, r.Ceph, r.OmittedCephMounts = host.Certificates, host.OmittedCertificates, host.Ceph, host.OmittedCephMounts
		r.Missing = append(r.Missing, host.Missing...)
	}
	if found.Missing != "" {
		r.endWithout(found.Missing)
	}
}

func (r *reporter) elapsed() time.Duration {
	return r.app.now().Sub(r.began).Round(100 * time.Millisecond)
}

// warn prints a line on standard error.
func (r *reporter) warn(format string, args ...any) {
	_ = r.sign.printAbove(func() error {
		_, err := fmt.Fprintln(r.app.stderr, view.Clean(fmt.Sprintf(format, args...)))
		return err
	})
}
