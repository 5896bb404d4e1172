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

// Traces is the result of a search for the remains of a node that neither the cluster nor the journal knows.
type Traces struct {
	journal.NodeTraced
	// Places are the places that EKCO searched. Names are the names of other nodes that it found there.
	Places, Names []string
}

// admitTraced answers a request to purge a name for which EKCO knows no node, or only purged nodes. If the search found
// traces, it admits the purge of a new node in state Gone, whose role is unknown.
func admitTraced(s *fsm.State, p fsm.Policy, now time.Time, request Request) (fsm.Admission, error) {
	if known := otherNodeWithName(s, request.Node); known != nil {
		return fsm.Admission{}, &UnknownNodeError{Name: request.Node, Alias: known.Name, Near: []string{known.Name}}
	}
	traces := request.Traces
	if traces == nil || len(traces.Found) == 0 {
		return fsm.Admission{}, errorWithoutTraces(s, request)
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
	admission, err := admitNew(fsm.NewWorld(s, p, now), n, request)
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

// NeedsTraces reports whether EKCO must search for traces of the name, because it knows no node with the name, or only
// purged nodes. since is the time of the last purge, or zero. Results of earlier searches must not be used.
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

// isFullyPurged reports whether the node is purged and has no open action. Anything that a search then finds under its
// name was left by the purge or belongs to another node.
func isFullyPurged(s *fsm.State, n *Node) bool { return n.State == Purged && !s.HasOpen(n.UID) }

// admitPurged answers a request to purge a name whose node n is already purged. If a search found traces nevertheless,
// it admits the purge of a node that EKCO never saw.
func admitPurged(s *fsm.State, p fsm.Policy, now time.Time, n *Node, request Request) (fsm.Admission, error) {
	if request.Traces != nil && len(request.Traces.Found) > 0 && otherNodeWithName(s, request.Node) == nil {
		admission, err := admitTraced(s, p, now, request)
		if err == nil {
			admission.Message = fmt.Sprintf("node %s (%s) was purged at %s, and EKCO has seen no other node with this name; what is left of it: %s",
				n.Name, identityText(n), fsm.Stamp(n.Since), strings.Join(request.Traces.Found, "; "))
		}
		return admission, err
	}
	message := fmt.Sprintf("node %s (%s) was purged already, at %s", n.Name, identityText(n), fsm.Stamp(n.Since))
	if looked := request.Traces; looked != nil {
		message += looked.notFound()
	}
	return fsm.Admission{AlreadyDone: true, Message: message}, nil
}

// notFound returns the part of a message that says where EKCO searched without success, and what it could not search.
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

// otherNodeWithName returns another known node to which the name, and so its traces, may belong, or nil: its name or
// hostname is the same if dots are replaced by dashes, as Rook does. It ignores purged nodes.
func otherNodeWithName(s *fsm.State, name string) *Node {
	for _, uid := range sortedKeys(s.Things) {
		n := Of(s, uid)
		if n == nil || n.Name == name || n.State == Purged || n.isPurged() {
			continue
		}
		for _, own := range []string{n.Name, n.Facts.Hostname} {
			if own != "" && withDashes(own) == withDashes(name) {
				return n
			}
		}
	}
	return nil
}

func withDashes(name string) string { return strings.ReplaceAll(name, ".", "-") }

// errorWithoutTraces returns the error for an unknown name of which a search found no traces.
func errorWithoutTraces(s *fsm.State, request Request) error {
	unknown := unknownNode(s, request.Node)
	if request.Traces != nil {
		unknown.Places, unknown.Doubts = request.Traces.Places, request.Traces.Doubts
		unknown.Near = fsm.Near(request.Node, mergeNames(namesLeft(s), request.Traces.Names))
	}
	return unknown
}

// mergeNames yields the names of both lists, each once.
func mergeNames(names iter.Seq[string], others []string) iter.Seq[string] {
	all := append(slices.Collect(names), others...)
	slices.Sort(all)
	return slices.Values(slices.Compact(all))
}

func unknownNode(s *fsm.State, name string) *UnknownNodeError {
	return &UnknownNodeError{Name: name, Near: fsm.Near(name, namesLeft(s))}
}

// namesLeft yields the names of known nodes that are not purged.
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
