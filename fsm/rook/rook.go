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

// nodes is the machine of what Ceph may use. Its things are known here by what everybody
// knows of them, and by [host].
const nodes = "node"

// The states of what Rook and Ceph have.
const (
	// InStep: nothing is to be changed about it.
	InStep journal.State = "InStep"
	// Behind: it differs from what the cluster's nodes and hosts call for.
	Behind journal.State = "Behind"
	// Changing: an action of EKCO's is open.
	Changing journal.State = "Changing"
	// Unknown: nobody knows yet on which hosts Ceph has OSDs.
	Unknown journal.State = "Unknown"
	// Removed: it is gone, or EKCO shall not look.
	Removed journal.State = "Removed"
)

// Policy is what the configuration says of Rook's storage.
type Policy struct {
	// Off says which setting keeps EKCO from changing the storage, "" if none does.
	Off string
	// UserManaged is set when the list of storage nodes is somebody else's.
	UserManaged bool
	// Label is what a node must have to store data, Value its value; "" for nothing.
	Label, Value string
	// MinCopies and MaxCopies are the least and the most copies of data.
	MinCopies, MaxCopies int
	// Pools are the custom resources with pools that are configured.
	Pools []journal.Subject
}

// policyOf returns what is configured. A policy that says nothing of it changes nothing.
func policyOf(w *fsm.World) Policy { return policy(w.PolicyOf(Machine)) }

func policy(configured any) Policy {
	p, known := configured.(Policy)
	if !known {
		p.Off = "nothing is configured"
	}
	return p
}

// has reports whether the custom resource is among the configured ones with pools.
func (p Policy) has(of journal.Subject) bool {
	return slices.ContainsFunc(p.Pools, func(pools journal.Subject) bool { return pools.Kind == of.Kind && pools.Name == of.Name })
}

// copies returns how many copies there shall be with so many hosts.
func (p Policy) copies(hosts int) int { return max(p.MinCopies, min(hosts, p.MaxCopies)) }

// Resource is what the machine keeps of a custom resource, and of Ceph.
type Resource struct {
	fsm.Object[journal.RookFacts]
	// Tried is what the last action of each kind was to change something to, whatever came of
	// it, and Made whether it did.
	Tried map[journal.ActionKind]string `json:"tried,omitempty"`
	Made  map[journal.ActionKind]bool   `json:"made,omitempty"`
	// Left are the hosts that the CRUSH map had, the newest last; of Ceph alone. Held are the
	// numbers as they were observed.
	Left []left          `json:"left,omitempty"`
	Held map[string]held `json:"held,omitempty"`
	// Partly are numbers that EKCO lowers to that, and then further if other hosts do not come
	// back; with the events since which they were what they are lowered from.
	Partly map[string]held `json:"partly,omitempty"`
	// Crush is the event since which the CRUSH map has the hosts that it has, zero if it had no
	// others; of Ceph alone.
	Crush uint64 `json:"crush,omitempty"`
}

func of(t *fsm.Thing) *Resource { return t.Data.(*Resource) }

// observed reports whether the thing is there.
func observed(t *fsm.Thing) bool { return t.FactsSeq != 0 && t.GoneSeq == 0 }

// one returns the thing of that name that was seen last, or nil if it is not there.
func one(w *fsm.World, subject journal.Subject) *fsm.Thing {
	var found *fsm.Thing
	for _, key := range w.Named(Machine, subject.Name) {
		t := w.Things[key]
		if t != nil && t.Kind == subject.Kind && observed(t) && (found == nil || t.FactsSeq > found.FactsSeq) {
			found = t
		}
	}
	return found
}

// cluster returns what is asked of the CephCluster, or false if there is none.
func cluster(w *fsm.World) (journal.RookFacts, bool) {
	t := one(w, journal.RookCluster)
	if t == nil {
		return journal.RookFacts{}, false
	}
	return of(t).Now(), true
}

// looksAfter reports whether there is a CephCluster that EKCO looks after. Of one that is being
// deleted, or of a Ceph that runs elsewhere, nothing is known that could be changed, and neither
// are its pools EKCO's then.
func looksAfter(w *fsm.World) bool {
	now, there := cluster(w)
	return there && (now.Storage != nil || len(now.Numbers) > 0)
}

// hosts returns how many hosts have OSDs that are up and in; false if nobody knows.
func hosts(w *fsm.World) (count int, known bool) {
	t := one(w, journal.RookCeph)
	if t == nil {
		return 0, false
	}
	return len(of(t).Facts.Hosts), true
}

// saidByCeph returns what Ceph says of itself, and the event that told of it; nil if nobody knows.
func saidByCeph(w *fsm.World) (said *journal.CephFacts, seen uint64) {
	t := one(w, journal.RookCeph)
	if t == nil {
		return nil, 0
	}
	return of(t).Facts.Ceph, t.FactsSeq
}

// again returns when EKCO may request what is wished, and whether it may. It need not wait if the last action of the
// kind was for another wish, as once one more node is ready, or if something is new of what it depends on, as when an
// OSD that was down for a moment is up again.
func again(t *fsm.Thing, asked wish, p fsm.Policy) (due time.Time, may bool) {
	last, r := t.Last[asked.kind], of(t)
	isNew := last != nil && asked.seen > last.Seq && last.Outcome != journal.OutcomeDryRun
	return t.RetryChange(asked.kind, r.Made[asked.kind] || r.Tried[asked.kind] != asked.to || isNew, p)
}

// host is what is known of a node besides its name.
type host interface {
	// Hostname is what its machine calls itself, "" where that is not known.
	Hostname() string
	// Labelled returns the value of a label of which facts are kept.
	Labelled(label string) (value string, has bool)
}

// hostname returns what Rook calls the node.
func hostname(t *fsm.Thing) string {
	if node, known := t.Data.(host); known {
		return cmp.Or(node.Hostname(), t.Name)
	}
	return t.Name
}

// Known returns the facts of the subject, as far as the journal knows it, by its name.
func Known(s *fsm.State, subject journal.Subject) map[string]journal.RookFacts {
	known := map[string]journal.RookFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.Kind == subject.Kind && t.Name == subject.Name && observed(t) {
			known[t.Name] = of(t).Facts.Of(t.UID)
		}
	}
	return known
}

// Former returns the custom resources with pools that the journal knows and that are not among
// those, in order of their kinds and names, without UIDs.
func Former(s *fsm.State, configured []journal.Subject) (former []journal.Subject) {
	for _, t := range s.Things {
		pools := journal.Subject{Kind: t.Kind, Name: t.Name}
		if t.Machine() == Machine && observed(t) && journal.HasRookPools(pools) && !slices.Contains(configured, pools) && !slices.Contains(former, pools) {
			former = append(former, pools)
		}
	}
	slices.SortFunc(former, func(a, b journal.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return former
}
