package node

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Traces is the result of a search for a node that neither the cluster nor the journal knows.
type Traces struct {
	journal.NodeTraced
	// Places is where EKCO searched. Names are names of other machines found there.
	Places, Names []string
}

// admitTraced answers a request for a name without a machine, or with purged ones only. The traces become a new
// machine: it is gone, and may have been a primary.
func admitTraced(s *fsm.State, p fsm.Policy, now time.Time, request Request) (fsm.Admission, error) {
	if known := alias(s, request.Node); known != nil {
		return fsm.Admission{}, &UnknownNodeError{Name: request.Node, Alias: known.Name, Near: []string{known.Name}}
	}
	traces := request.Traces
	if traces == nil || len(traces.Found) == 0 {
		return fsm.Admission{}, untraced(s, request)
	}
	n := of(s.New(Machine, journal.NodeSubject(request.Node, journal.TracedUID(request.Node)), Gone, now))
	n.GoneAt, n.GoneReason = now, neverSeen
	if request.UID != "" && request.UID != n.UID {
		return refuse(n, request, RuleReplaced, fmt.Sprintf(
			"EKCO knows no node with uid %s; what is left under its name may belong to another node; check it, then ask again", request.UID))
	}
	if s.Journal.SafeMode() {
		return refuse(n, request, fsm.RuleSafeMode, fsm.SafeModeReason(s))
	}
	admission, err := admitNew(fsm.Look(s, p, now), n, request)
	if err != nil {
		return admission, err
	}
	traced := journal.Draft{
		Type: journal.TypeNodeTraced, Subject: n.Subject, Action: admission.Action, Actor: request.Actor,
		Payload: traces.NodeTraced,
	}
	admission.Events = slices.Insert(admission.Events, 0, traced)
	admission.Message = fmt.Sprintf("EKCO never saw node %s; what is left of it: %s", n.Name, strings.Join(traces.Found, "; "))
	return admission, nil
}

// NeedsTraces reports whether only a search can find what there is to purge under the name: it has no machine, or only
// purged ones. since is when the last one was purged, or zero: an older search is useless.
func NeedsTraces(s *fsm.State, name string) (since time.Time, needed bool) {
	nodes := ByName(s, name)
	if len(nodes) == 0 {
		return time.Time{}, true
	}
	for _, n := range nodes {
		if n.State == Purged && n.Since.After(since) {
			since = n.Since
		}
	}
	return since, isFullyPurged(s, nodes[0])
}

// isFullyPurged reports whether the machine is purged and has no open action, so that anything found under its name now
// is left over or belongs to another machine.
func isFullyPurged(s *fsm.State, n *Node) bool { return n.State == Purged && !s.HasOpen(n.UID) }

// admitPurged answers a request for a name whose machine n is purged. Traces that were found nevertheless become a
// machine that EKCO never saw.
func admitPurged(s *fsm.State, p fsm.Policy, now time.Time, n *Node, request Request) (fsm.Admission, error) {
	if request.Traces != nil && len(request.Traces.Found) > 0 && alias(s, request.Node) == nil {
		admission, err := admitTraced(s, p, now, request)
		if err == nil {
			admission.Message = fmt.Sprintf("node %s (%s) was purged at %s, and EKCO has seen no other node with this name; what is left of it: %s",
				n.Name, identity(n), fsm.Stamp(n.Since), strings.Join(request.Traces.Found, "; "))
		}
		return admission, err
	}
	message := fmt.Sprintf("node %s (%s) was purged already, at %s", n.Name, identity(n), fsm.Stamp(n.Since))
	if looked := request.Traces; looked != nil {
		message += looked.notFound()
	}
	return fsm.Admission{AlreadyDone: true, Message: message}, nil
}

// notFound says where a search found nothing, and what it could not check.
func (t Traces) notFound() string {
	text := ""
	if len(t.Places) > 0 {
		text = "; EKCO searched again just now, and found no trace of it in " + strings.Join(t.Places, " or ")
	}
	for _, doubt := range t.Doubts {
		text += "; " + doubt
	}
	return text
}

// alias returns another machine that the name may belong to: its name or hostname is the same once dots are dashes, as
// Rook writes them. The traces of the name are then that machine's. A purged machine has left nothing.
func alias(s *fsm.State, name string) *Node {
	for _, uid := range sortedKeys(s.Things) {
		n := Of(s, uid)
		if n == nil || n.Name == name || n.State == Purged || n.purged() {
			continue
		}
		for _, own := range []string{n.Name, n.Facts.Hostname} {
			if own != "" && dashed(own) == dashed(name) {
				return n
			}
		}
	}
	return nil
}

func dashed(name string) string { return strings.ReplaceAll(name, ".", "-") }

// untraced returns the error for a name without traces.
func untraced(s *fsm.State, request Request) error {
	unknown := unknownNode(s, request.Node)
	if request.Traces != nil {
		unknown.Places, unknown.Doubts = request.Traces.Places, request.Traces.Doubts
		unknown.Near = fsm.Near(request.Node, mergeNames(namesLeft(s), request.Traces.Names))
	}
	return unknown
}

// mergeNames yields every name once.
func mergeNames(names iter.Seq[string], others []string) iter.Seq[string] {
	all := append(slices.Collect(names), others...)
	slices.Sort(all)
	return slices.Values(slices.Compact(all))
}

func unknownNode(s *fsm.State, name string) *UnknownNodeError {
	return &UnknownNodeError{Name: name, Near: fsm.Near(name, namesLeft(s))}
}

// namesLeft yields the names that have a machine which is not purged.
func namesLeft(s *fsm.State) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, things := range s.ByName(Machine) {
			left := slices.ContainsFunc(things, func(t *fsm.Thing) bool { return t.State != Purged })
			if left && !yield(name) {
				return
			}
		}
	}
}
