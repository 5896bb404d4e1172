package loadbalancer

import (
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Off is the reason why EKCO does nothing if the setting enable_internal_load_balancer is off.
const Off = "enable_internal_load_balancer is off; the files on the node stay as they are"

func kinds() []fsm.ActionKind {
	off := func(p fsm.Policy) string {
		if policyOf(p).Enabled {
			return ""
		}
		return Off
	}
	return []fsm.ActionKind{
		{
			Name: journal.ActionUpdateLoadBalancer, Verb: "update-lb", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleRollout},
		},
		{
			Name: journal.ActionRestartLoadBalancer, Verb: "restart-lb", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleRollout, fsm.RuleOneAtATime},
			Turn:  "only one load balancer is restarted at a time",
		},
		{
			Name: journal.ActionNoteLoadBalancers, Verb: "note-lb", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused},
		},
	}
}

func (machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "the load balancer on a node",
		About: "HAProxy in front of the API servers, one on each node and with the node's name. It is InStep when it was verified\n" +
			"to run with the current primaries and manifest. The ConfigMap `update-internallb` is InStep when it lists the present nodes.",
		Initial: string(Behind), Normal: fsm.Names(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "update", From: fsm.Names(Behind, InStep), To: string(Updating), When: "an update-load-balancer, restart-load-balancer or note-load-balancers action is open", Report: fsm.ReportReason("EKCO updates or checks it")},
			{Event: "reached", From: fsm.Names(Behind, Updating), To: string(InStep), When: "HAProxy was verified to run with the primaries, the image and the file version; the ConfigMap is up to date", Report: reportReached},
			{Event: "behind", From: fsm.Names(InStep, Updating), To: string(Behind), When: "another primary, image or file version is wanted, HAProxy was restarted, or its state is not verified; the ConfigMap is out of date", Report: reportBehind},
			{Event: "removed", From: fsm.Names(Behind, Updating, InStep), To: string(Removed), When: "the node is gone, or enable_internal_load_balancer is off", Report: reportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(Behind), When: "the node exists again, and enable_internal_load_balancer is on", Report: fsm.ReportReason("the node exists again")},
		},
	}
}

func reportReached(t *fsm.Thing, at journal.State, now time.Time) fsm.Report {
	if listOf(t) != nil {
		return fsm.ReportReason("it lists the present nodes")(t, at, now)
	}
	return fsm.ReportReason("HAProxy runs with the wanted files")(t, at, now)
}

func reportBehind(t *fsm.Thing, at journal.State, now time.Time) fsm.Report {
	if listOf(t) != nil {
		return fsm.ReportReason("it does not list the present nodes")(t, at, now)
	}
	return fsm.ReportReason("HAProxy was not verified to run with the wanted files")(t, at, now)
}

func reportLost(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	if l := listOf(t); l != nil {
		return fsm.Report{Reason: l.Lost, Cause: t.Newest()}
	}
	return fsm.Report{Reason: of(t).Lost, Cause: t.Newest()}
}

// requestReason returns why EKCO requests an action on the load balancer.
func (s *sum) requestReason(t *fsm.Thing, kind journal.ActionKind, w *fsm.World) string {
	b, wanted, p := of(t), s.wantedState(w, t), policyOf(w.Policy)
	switch proved := b.Proved; {
	case proved == nil:
		return "it was not verified yet; " + primariesAre(wanted.Primaries)
	case kind == journal.ActionRestartLoadBalancer && proved.Image == "":
		return fmt.Sprintf("there is no HAProxy on the node; it should have image %s", p.Image)
	case kind == journal.ActionRestartLoadBalancer:
		return fmt.Sprintf("HAProxy has image %s and file version %s, and should have %s and %s", proved.Image, proved.Version, p.Image, b.wantedVersion(p))
	case proved.Input.Layout != wanted.Layout:
		return "this version of EKCO writes its configuration in another way; " + primariesAre(wanted.Primaries)
	case !sameConfig(proved.Input, wanted):
		return fmt.Sprintf("%s, and HAProxy forwards to %s", primariesAre(wanted.Primaries), strings.Join(proved.Input.Primaries, ", "))
	case proved.Asked < s.overwritten:
		return "change-load-balancer wrote it, with the primaries at the time of its request; " + primariesAre(wanted.Primaries)
	case proved.Asked < s.rewriteAfter():
		return fmt.Sprintf("another program deleted or changed ConfigMap %s: "+rewriteReason, s.list.Name)
	case b.Worse:
		return "the node was lost soon after its load balancer was changed, and is ready again: EKCO verifies it"
	case hasRestarted(t) && b.Facts.Started.IsZero():
		return "HAProxy no longer runs on the node"
	case hasRestarted(t):
		return "HAProxy was restarted on the node at " + fsm.Stamp(b.Facts.Started)
	}
	return "daily check; the last one was at " + fsm.Stamp(lastCheckedAt(t))
}

// maxNamed is how many primaries a sentence names at most.
const maxNamed = 8

func primariesAre(primaries []string) string {
	named, more := primaries, ""
	if len(named) > maxNamed {
		named, more = named[:maxNamed], fmt.Sprintf(" and %d more", len(primaries)-maxNamed)
	}
	return "the primaries are " + strings.Join(named, ", ") + more
}
