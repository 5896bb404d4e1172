package loadbalancer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for load balancers and their actions.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionUpdateLoadBalancer, Verb: "update", Noun: "load balancer", RolloutTarget: primariesIn, RolloutWaits: Behind},
		{Kind: journal.ActionRestartLoadBalancer, Verb: "restart", Noun: "load balancer", RolloutTarget: imageIn, RolloutWaits: Behind},
		{Kind: journal.ActionNoteLoadBalancers, Verb: "note", Noun: "load balancers"},
	},
	Rows: append(rows(journal.KindLoadBalancer, factsSentence), rows(journal.KindLoadBalancerList, listSentence)...),
}

// rewriteReason is the end of the reason with which EKCO writes all load balancers again.
const rewriteReason = "everything is written again"

// primariesIn returns the rollout target of an update, or "" for an action that only checks a load balancer. In events
// of earlier versions only the reason distinguishes the two.
func primariesIn(p *journal.ActionRequested) string {
	input, err := journal.InputOf[journal.LoadBalancerInput](*p)
	if target := primariesAre(input.Primaries); err == nil && (strings.Contains(p.Reason, target) || strings.HasSuffix(p.Reason, rewriteReason)) {
		return target
	}
	return ""
}

// imageIn returns the rollout target of a restart, or "".
func imageIn(p *journal.ActionRequested) string {
	input, err := journal.InputOf[journal.LoadBalancerInput](*p)
	if err != nil || input.Image == "" {
		return ""
	}
	return "the image is " + input.Image
}

func rows(kind string, seen func(journal.Event, *journal.ThingObserved) string) []words.Row {
	return []words.Row{
		words.Transition(kind, words.IsNow("")),
		{Type: journal.TypeThingObserved, About: kind, Tone: words.Faint, Sentence: words.Of(seen)},
		{Type: journal.TypeThingGone, About: kind, Sentence: words.Of(func(e journal.Event, p *journal.ThingGone) string {
			return words.Object(e.Subject) + " is no longer managed" + words.Because(p.Reason)
		})},
	}
}

func listSentence(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.LoadBalancerListFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	switch {
	case facts.UID == "":
		return words.Object(e.Subject) + " does not exist: EKCO writes all load balancers again"
	case facts.Sum == "":
		return words.Object(e.Subject) + " is empty"
	}
	return words.Object(e.Subject) + " lists nodes"
}

func factsSentence(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.LoadBalancerFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	role, at, ready := "", "no address", "not ready"
	if facts.Primary {
		role = " (primary)"
	}
	if facts.Address != "" {
		at = facts.Address
	}
	if facts.Ready {
		ready = "ready"
	}
	haproxy := "HAProxy does not run there"
	if !facts.Started.IsZero() {
		haproxy = "HAProxy runs there since " + fsm.Stamp(facts.Started)
	}
	return fmt.Sprintf("the node of %s%s has %s and is %s; %s", words.Object(e.Subject), role, at, ready, haproxy)
}
