package rook

import (
	"cmp"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "rook"

// nodeMachine is the name of the machine of nodes. This package uses only the methods of [host] of its data.
const nodeMachine = "node"

// The states of a custom resource of Rook, and of Ceph.
const (
	// InStep: the thing needs no change.
	InStep journal.State = "InStep"
	// Behind: the thing must be changed because of the present nodes and hosts.
	Behind journal.State = "Behind"
	// Changing: an action about the thing is open.
	Changing journal.State = "Changing"
	// Unknown: Ceph has not reported yet which hosts have OSDs.
	Unknown journal.State = "Unknown"
	// Removed: the thing no longer exists, or the settings exclude it.
	Removed journal.State = "Removed"
)

// Policy is the part of the configuration that decisions about Rook's storage depend on.
type Policy struct {
	// Off names the setting that forbids EKCO to change the storage, or is "".
	Off string
	// UserManaged is set if an administrator manages the list of storage nodes.
	UserManaged bool
	// Label and Value are the label that a storage node must have; Label is "" if no label is required.
	Label, Value string
	// MinCopies and MaxCopies are the limits for the number of copies of the data.
	MinCopies, MaxCopies int
	// Pools are the configured custom resources that have pools.
	Pools []journal.Subject
}

// policyOf returns the policy for Rook's storage. If it is missing, Off is set, so that EKCO changes nothing.
func policyOf(w *fsm.World) Policy { return policy(w.PolicyOf(Machine)) }

func policy(configured any) Policy {
	p, known := configured.(Policy)
	if !known {
		p.Off = "nothing is configured"
	}
	return p
}

func (p Policy) hasPool(of journal.Subject) bool {
	return slices.ContainsFunc(p.Pools, func(pools journal.Subject) bool { return pools.Kind == of.Kind && pools.Name == of.Name })
}

// copies returns how many copies EKCO wants with this number of hosts.
func (p Policy) copies(hosts int) int { return max(p.MinCopies, min(hosts, p.MaxCopies)) }

// Resource is the machine's data about a custom resource, or about Ceph.
type Resource struct {
	fsm.Object[journal.RookFacts]
	// Tried has the value that the last action of each kind tried to set. Made says whether the action set it.
	Tried map[journal.ActionKind]string `json:"tried,omitempty"`
	Made  map[journal.ActionKind]bool   `json:"made,omitempty"`
	// Left are the hosts that have left the CRUSH map, the newest last. Only the data about Ceph has it. Held has the
	// observed numbers, by JSON pointer.
	Left []leftHost            `json:"left,omitempty"`
	Held map[string]heldNumber `json:"held,omitempty"`
	// Partly has the numbers that EKCO has lowered only in part, and will lower further unless other hosts return. Its
	// Seq is the event that first had the former value.
	Partly map[string]heldNumber `json:"partly,omitempty"`
	// Crush is the event in which the hosts in the CRUSH map last changed; zero if they never changed. Only the data
	// about Ceph has it.
	Crush uint64 `json:"crush,omitempty"`
}

func of(t *fsm.Thing) *Resource { return t.Data.(*Resource) }

// findThing returns the existing thing with the kind and name of the subject that was observed last, or nil.
func findThing(w *fsm.World, subject journal.Subject) *fsm.Thing {
	var found *fsm.Thing
	for _, key := range w.Named(Machine, subject.Name) {
		t := w.Things[key]
		if t != nil && t.Kind == subject.Kind && t.Exists() && (found == nil || t.FactsSeq > found.FactsSeq) {
			found = t
		}
	}
	return found
}

// cluster returns the facts about the CephCluster, and false if there is none.
func cluster(w *fsm.World) (journal.RookFacts, bool) {
	t := findThing(w, journal.RookCluster)
	if t == nil {
		return journal.RookFacts{}, false
	}
	return of(t).Now(), true
}

// managesCluster reports whether there is a CephCluster that EKCO manages. EKCO does not manage a CephCluster that is
// being deleted or uses an external Ceph, and does not change pools then.
func managesCluster(w *fsm.World) bool {
	now, there := cluster(w)
	return there && (now.Storage != nil || len(now.Numbers) > 0)
}

// countUpHosts returns how many hosts have OSDs that are up and in, and false if this is unknown.
func countUpHosts(w *fsm.World) (count int, known bool) {
	t := findThing(w, journal.RookCeph)
	if t == nil {
		return 0, false
	}
	return len(of(t).Facts.Hosts), true
}

// cephFacts returns the facts that Ceph last reported, and the event that has them; nil if Ceph has not reported.
func cephFacts(w *fsm.World) (reported *journal.CephFacts, seen uint64) {
	t := findThing(w, journal.RookCeph)
	if t == nil {
		return nil, 0
	}
	return of(t).Facts.Ceph, t.FactsSeq
}

// repeatDue returns when EKCO may request the change, and whether it may do so at all. It may do so at once after an
// action of the kind that set another value (for example, one more node is ready now), and after new facts about
// another thing on which the change depends (for example, an OSD is up again).
func repeatDue(t *fsm.Thing, asked wish, p fsm.Policy) (due time.Time, may bool) {
	last, r := t.Last[asked.kind], of(t)
	isNew := last != nil && asked.seen > last.Seq && last.Outcome != journal.OutcomeDryRun
	return t.RetryChange(asked.kind, r.Made[asked.kind] || r.Tried[asked.kind] != asked.to || isNew, p)
}

// host has the methods of a node's data that this package uses.
type host interface {
	// Hostname returns the node's hostname, or "" if unknown.
	Hostname() string
	// Labelled returns the value of a label, and whether the facts have the label.
	Labelled(label string) (value string, has bool)
}

// hostname returns the name of the node in Rook's list: its hostname, or its name if the hostname is unknown.
func hostname(t *fsm.Thing) string {
	if node, known := t.Data.(host); known {
		return cmp.Or(node.Hostname(), t.Name)
	}
	return t.Name
}

// Known returns the facts about the subject according to the journal, by name. The map is empty if it does not exist.
func Known(s *fsm.State, subject journal.Subject) map[string]journal.RookFacts {
	known := map[string]journal.RookFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.Kind == subject.Kind && t.Name == subject.Name && t.Exists() {
			known[t.Name] = of(t).Facts.WithUID(t.UID)
		}
	}
	return known
}

// Unconfigured returns the custom resources with pools that exist according to the journal and are not in configured,
// sorted by kind and name, without UIDs.
func Unconfigured(s *fsm.State, configured []journal.Subject) (former []journal.Subject) {
	for _, t := range s.Things {
		pools := journal.Subject{Kind: t.Kind, Name: t.Name}
		if t.Machine() == Machine && t.Exists() && journal.HasRookPools(pools) && !slices.Contains(configured, pools) && !slices.Contains(former, pools) {
			former = append(former, pools)
		}
	}
	slices.SortFunc(former, func(a, b journal.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return former
}
