package loadbalancer

import (
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func kinds() []fsm.ActionKind {
	off := func(p fsm.Policy) string {
		if policyOf(p).Enabled {
			return ""
		}
		return "enable_internal_load_balancer is off; what is on the node stays as it is"
	}
	return []fsm.ActionKind{
		{
			Name: journal.ActionUpdateLoadBalancer, Verb: "update-lb", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused},
		},
		{
			Name: journal.ActionRestartLoadBalancer, Verb: "restart-lb", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleOneAtATime},
			Turn:  "only one load balancer is restarted at a time",
		},
	}
}

// Table implements [fsm.Machine].
func (machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "the load balancer on a node",
		About:   "HAProxy in front of the API servers, one on each node and called like it. It is in step when it was proved to run with the primaries and the manifest that it shall have.",
		Initial: string(Behind), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "update", From: fsm.Names(Behind, InStep), To: string(Updating), When: "an update-load-balancer or restart-load-balancer action is open", Tells: tells("it is brought in step")},
			{Event: "reached", From: fsm.Names(Behind, Updating), To: string(InStep), When: "HAProxy was proved to run with the primaries, the image and the file version", Tells: tells("HAProxy runs with what it shall")},
			{Event: "behind", From: fsm.Names(InStep, Updating), To: string(Behind), When: "another primary, image or file version is wanted, or nothing is proved", Tells: tells("it is not proved to run with what it shall")},
			{Event: "removed", From: fsm.Names(Behind, Updating, InStep), To: string(Removed), When: "the node is gone, or enable_internal_load_balancer is off", Tells: toldLost},
			{Event: "back", From: fsm.Names(Removed), To: string(Behind), When: "there is such a node again, and enable_internal_load_balancer is on", Tells: tells("there is such a node again")},
		},
	}
}

func tells(reason string) func(*fsm.Thing, journal.State, time.Time) fsm.Telling {
	return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
		return fsm.Telling{Reason: reason, Cause: t.Newest()}
	}
}

func toldLost(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
	return fsm.Telling{Reason: of(t).Lost, Cause: t.Newest()}
}

// reason says why an action is asked for.
func reason(b *balancer, kind journal.ActionKind, shall journal.LoadBalancerInput, p Policy) string {
	switch {
	case kind == journal.ActionRestartLoadBalancer && b.Proved != nil && b.Proved.Image == "":
		return fmt.Sprintf("there is no HAProxy on the node; it shall have image %s", p.Image)
	case kind == journal.ActionRestartLoadBalancer && b.Proved != nil:
		return fmt.Sprintf("HAProxy has image %s and file version %s, and shall have %s and %s", b.Proved.Image, b.Proved.Version, p.Image, p.Version)
	case b.Proved == nil:
		return "nothing is proved of it yet; " + primariesAre(shall.Primaries)
	case b.Proved.Input.Layout != shall.Layout:
		return "this version of EKCO writes its configuration in another way; " + primariesAre(shall.Primaries)
	}
	return fmt.Sprintf("%s, and it leads to %s", primariesAre(shall.Primaries), strings.Join(b.Proved.Input.Primaries, ", "))
}

// mostNamed is how many primaries are named in a sentence.
const mostNamed = 8

func primariesAre(primaries []string) string {
	named, more := primaries, ""
	if len(named) > mostNamed {
		named, more = named[:mostNamed], fmt.Sprintf(" and %d more", len(primaries)-mostNamed)
	}
	return "the primaries are " + strings.Join(named, ", ") + more
}
