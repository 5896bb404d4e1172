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

// nodes is the machine of nodes. This package knows only what every machine's things have, and [host].
const nodes = "node"

// The states of what Rook and Ceph have.
const (
	// InStep: it needs no change.
	InStep journal.State = "InStep"
	// Behind: it differs from what the nodes and hosts require.
	Behind journal.State = "Behind"
	// Changing: an action of EKCO's is open.
	Changing journal.State = "Changing"
	// Unknown: Ceph has not reported yet which hosts have OSDs.
	Unknown journal.State = "Unknown"
	// Removed: it is gone, or the settings exclude it.
	Removed journal.State = "Removed"
)

// Policy is the configuration for Rook's storage.
type Policy struct {
	// Off names the setting that forbids EKCO to change the storage, or is "".
	Off string
	// UserManaged is set if an administrator manages the list of storage nodes.
	UserManaged bool
	// Label and Value are the label that a storage node must have; "" for none.
	Label, Value string
	// MinCopies and MaxCopies limit the number of copies.
	MinCopies, MaxCopies int
	// Pools are the configured custom resources that make pools.
	Pools []journal.Subject
}

// policyOf returns the configuration. A missing one changes nothing.
func policyOf(w *fsm.World) Policy { return policy(w.PolicyOf(Machine)) }

func policy(configured any) Policy {
	p, known := configured.(Policy)
	if !known {
		p.Off = "nothing is configured"
	}
	return p
}

// has reports whether the custom resource is one of the configured pools.
func (p Policy) has(of journal.Subject) bool {
	return slices.ContainsFunc(p.Pools, func(pools journal.Subject) bool { return pools.Kind == of.Kind && pools.Name == of.Name })
}

// copies returns the number of copies for so many hosts.
func (p Policy) copies(hosts int) int { return max(p.MinCopies, min(hosts, p.MaxCopies)) }

// Resource is what the machine keeps of a custom resource, or of Ceph.
type Resource struct {
	fsm.Object[journal.RookFacts]
	// Tried is the value that each kind's last action was to set, whatever its outcome; Made is whether it did.
	Tried map[journal.ActionKind]string `json:"tried,omitempty"`
	Made  map[journal.ActionKind]bool   `json:"made,omitempty"`
	// Left are the hosts that have left the CRUSH map, the newest last; for Ceph only. Held are the observed numbers.
	Left []leftHost            `json:"left,omitempty"`
	Held map[string]heldNumber `json:"held,omitempty"`
	// Partly are numbers that EKCO has lowered in part, and will lower further if other hosts do not come back; with
	// the events since which they had the former value.
	Partly map[string]heldNumber `json:"partly,omitempty"`
	// Crush is the event since which the CRUSH map has its present hosts, zero if they never changed; for Ceph only.
	Crush uint64 `json:"crush,omitempty"`
}

func of(t *fsm.Thing) *Resource { return t.Data.(*Resource) }

// find returns the existing thing with this name that was seen last, or nil.
func find(w *fsm.World, subject journal.Subject) *fsm.Thing {
	var found *fsm.Thing
	for _, key := range w.Named(Machine, subject.Name) {
		t := w.Things[key]
		if t != nil && t.Kind == subject.Kind && t.Exists() && (found == nil || t.FactsSeq > found.FactsSeq) {
			found = t
		}
	}
	return found
}

// cluster returns the CephCluster's facts, or false if there is none.
func cluster(w *fsm.World) (journal.RookFacts, bool) {
	t := find(w, journal.RookCluster)
	if t == nil {
		return journal.RookFacts{}, false
	}
	return of(t).Now(), true
}

// manages reports whether there is a CephCluster that EKCO manages. It does not manage one that is being deleted or
// that uses an external Ceph, nor its pools.
func manages(w *fsm.World) bool {
	now, there := cluster(w)
	return there && (now.Storage != nil || len(now.Numbers) > 0)
}

// hosts returns how many hosts have OSDs that are up and in; false if unknown.
func hosts(w *fsm.World) (count int, known bool) {
	t := find(w, journal.RookCeph)
	if t == nil {
		return 0, false
	}
	return len(of(t).Facts.Hosts), true
}

// cephFacts returns what Ceph reports about itself, and the event with it; nil if unknown.
func cephFacts(w *fsm.World) (reported *journal.CephFacts, seen uint64) {
	t := find(w, journal.RookCeph)
	if t == nil {
		return nil, 0
	}
	return of(t).Facts.Ceph, t.FactsSeq
}

// again returns when EKCO may request the change, and whether it may. It need not wait if the last action of the kind
// was for another value, as after one more node became ready, or if something else that the change depends on is new,
// as after an OSD came up again.
func again(t *fsm.Thing, asked wish, p fsm.Policy) (due time.Time, may bool) {
	last, r := t.Last[asked.kind], of(t)
	isNew := last != nil && asked.seen > last.Seq && last.Outcome != journal.OutcomeDryRun
	return t.RetryChange(asked.kind, r.Made[asked.kind] || r.Tried[asked.kind] != asked.to || isNew, p)
}

// host is what this package knows of a node besides its name.
type host interface {
	// Hostname is the machine's own hostname, "" if unknown.
	Hostname() string
	// Labelled returns the value of a label, if the facts include that label.
	Labelled(label string) (value string, has bool)
}

// hostname returns Rook's name for the node.
func hostname(t *fsm.Thing) string {
	if node, known := t.Data.(host); known {
		return cmp.Or(node.Hostname(), t.Name)
	}
	return t.Name
}

// Known returns, by name, the facts of the subject, as far as the journal knows it.
func Known(s *fsm.State, subject journal.Subject) map[string]journal.RookFacts {
	known := map[string]journal.RookFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.Kind == subject.Kind && t.Name == subject.Name && t.Exists() {
			known[t.Name] = of(t).Facts.Of(t.UID)
		}
	}
	return known
}

// Unconfigured returns the custom resources with pools that the journal knows and the configuration does not have,
// ordered by kind and name, without UIDs.
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
