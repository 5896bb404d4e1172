package rook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// settles is how long a host must be gone before copies are lowered for it. Until then the pool
// shows that it is not as it shall be, and whoever replaces the host may be done.
const settles = 30 * time.Second

// leftKept is how many hosts that are gone are remembered, the newest.
const leftKept = 64

// left is a host that the CRUSH map had, and has no more.
type left struct {
	Host string `json:"host"`
	// Seq is the event that told of it, At when EKCO saw it.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

// held is a number as it was observed, and the event since which it is that.
type held struct {
	Number int    `json:"number"`
	Seq    uint64 `json:"seq"`
}

// Observed also keeps which hosts have left the CRUSH map, and since when each number is what it
// is: fewer copies are only asked for of what was so large when the host was still there.
func (m machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	r := of(t)
	before := crushOf(r.Facts)
	if err := m.Objects.Observed(t, e, facts); err != nil {
		return err
	}
	r.leave(before, e)
	r.hold(e)
	return nil
}

// leave compares the CRUSH map with what it was. Of events that did not tell of it nobody knows
// who has left.
func (r *Resource) leave(before []string, e journal.Event) {
	now := crushOf(r.Facts)
	if len(without(now, before)) > 0 || len(without(before, now)) > 0 {
		r.Crush = e.Seq
	}
	r.Left = slices.DeleteFunc(r.Left, func(l left) bool { return slices.Contains(now, l.Host) })
	for _, host := range before {
		if !slices.Contains(now, host) {
			r.Left = append(r.Left, left{Host: host, Seq: e.Seq, At: e.Time})
		}
	}
	r.Left = r.Left[max(0, len(r.Left)-leftKept):]
}

// hold keeps the numbers that have changed. What EKCO has lowered in part is held since it was
// more.
func (r *Resource) hold(e journal.Event) {
	holds := make(map[string]held, len(r.Facts.Numbers))
	for place, number := range r.Facts.Numbers {
		if holds[place] = r.Held[place]; r.Held[place].Number == number {
			continue
		}
		holds[place] = held{Number: number, Seq: e.Seq}
		if r.Partly[place].Number == number {
			holds[place] = r.Partly[place]
		}
		delete(r.Partly, place)
	}
	r.Held = holds
}

// Opened implements [fsm.Machine].
func (machine) Opened(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || !change.Partly {
		return
	}
	r := of(t)
	if r.Partly == nil {
		r.Partly = map[string]held{}
	}
	for place, number := range change.Numbers {
		r.Partly[place] = held{Number: number.To, Seq: r.Held[place].Seq}
	}
}

// notLowered forgets what an action was to lower in part, and has not.
func (r *Resource) notLowered(rec *journal.ActionRecord) {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err == nil && change.Partly && !r.Made[rec.Kind] {
		maps.DeleteFunc(r.Partly, func(place string, _ held) bool { _, is := change.Numbers[place]; return is })
	}
}

// Ages implements [fsm.Machine].
func (machine) Ages(t *fsm.Thing, visit func(*time.Time)) {
	for i := range of(t).Left {
		visit(&of(t).Left[i].At)
	}
}

// returns is how long a host that has left the CRUSH map may take to come back as long as its Node
// is there: whoever replaces its disks, or installs it anew, keeps the copies until then.
const returns = 24 * time.Hour

// wishFewer asks that a pool has no more copies than there are hosts left for them, once a host
// is gone for good: out of the CRUSH map, and with no Node of its name. One number at a time,
// and only one that was so large when the host was still there: what somebody has set since is
// meant. A pool that Ceph does not have under the name that Rook gives it is left alone, and so is
// one whose copies may share a host: the lowering could not begin, and would keep all others
// waiting. It never asks for fewer copies than the CRUSH map has hosts, up or not, so that
// [wishCopies] never asks for more at the same time. A number that waits for a host that may come
// back comes after those that need not.
func wishFewer(t *fsm.Thing, w *fsm.World) (waiting wish, is bool) {
	for _, place := range placesOf(of(t).Now().Numbers) {
		asked, asks := wishFewerAt(t, place, w)
		switch {
		case asks && len(asked.kept) == 0:
			return asked, true
		case asks && !is:
			waiting, is = asked, true
		}
	}
	return waiting, is
}

// wishFewerAt is [wishFewer] for the number at the place.
func wishFewerAt(t *fsm.Thing, place string, w *fsm.World) (wish, bool) {
	p := policyOf(w)
	ceph := one(w, journal.RookCeph)
	if ceph == nil || !p.has(t.Subject) {
		return wish{}, false
	}
	hosts := len(crushOf(of(ceph).Facts))
	if hosts == 0 || !eachOnAHost(madeOf(of(ceph).Facts.Ceph, t.Subject, of(t).Now().Names, place)) {
		return wish{}, false // no host less keeps it from having its copies, or nobody knows
	}
	now := of(t).Now().Numbers[place]
	gone, since, back := goneSince(of(ceph).Left, of(t).heldSince(place), w)
	to := max(p.MinCopies, hosts, least(of(t).Now(), place))
	if len(gone) == 0 || to >= now {
		return wish{}, false
	}
	partly := false
	if with := max(to, hosts+len(back)); with < now {
		partly, to, back = with > to, with, nil
	}
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{place: {From: now, To: to}}, Gone: gone, Partly: partly, ByCommand: isOld(w)}
	change.Names = namesAt(of(t).Now().Names, change.Numbers)
	return wish{
		kind: journal.ActionLowerCopies, change: change, due: since.Add(settles), kept: back,
		why:   fmt.Sprintf("%s gone for good, and the CRUSH map has %s left, so it should have %s, and has %s", hostsGone(gone), words.Count(hosts, "host"), change.To(), change.From()),
		field: "the copies of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), about: among(place, w),
	}, true
}

// eachOnAHost reports whether it is known of a number's pools that each of their copies is on
// another host, whichever.
func eachOnAHost(pools []journal.CephPool) bool {
	other := func(pool journal.CephPool) bool { return pool.Bound || pool.OnOSDs }
	return len(pools) > 0 && !slices.ContainsFunc(pools, other)
}

func placesOf(numbers map[string]int) []string {
	places := make([]string, 0, len(numbers))
	for place := range numbers {
		places = append(places, place)
	}
	slices.Sort(places)
	return places
}

// heldSince returns the event since which the number is what it is now; the highest there is if
// what is known of it was not observed yet.
func (r *Resource) heldSince(place string) uint64 {
	if held, known := r.Held[place]; known && held.Number == r.Now().Numbers[place] {
		return held.Seq
	}
	return ^uint64(0)
}

// goneSince returns the hosts that have left the CRUSH map after the event and are gone for good,
// since when, and which others have left it and may come back.
func goneSince(all []left, after uint64, w *fsm.World) (gone []string, since time.Time, back []left) {
	there := hostsOfNodes(w)
	for _, l := range all {
		switch node := there[l.Host]; {
		case node != nil && l.returns(node, w):
			back = append(back, l)
		case node == nil && l.Seq > after:
			gone = append(gone, l.Host)
			since = later(since, l.At)
		}
	}
	return gone, since, back
}

// returns reports whether the host whose Node is there may come back: not so long after it has
// left, and as one that Ceph may use.
func (l left) returns(node *fsm.Thing, w *fsm.World) bool {
	return w.Now.Before(l.At.Add(returns)) && mayStore(node, w)
}

// mayStore reports whether Ceph may use the node, or is to be told that it may.
func mayStore(node *fsm.Thing, w *fsm.World) bool {
	now, _ := cluster(w)
	storage, p := now.Storage, policyOf(w)
	return storage == nil || storage.AllNodes || storage.Lists(hostname(node)) || storage.Lists(node.Name) || !p.UserManaged && stores(node, p)
}

// until returns when the first of the hosts is not waited for any more.
func until(kept []left) (first time.Time) {
	for _, l := range kept {
		if at := l.At.Add(returns); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// mayReturn says which hosts are waited for.
func mayReturn(kept []left) string {
	names := make([]string, len(kept))
	for i, l := range kept {
		names[i] = l.Host
	}
	if len(names) == 1 {
		return "host " + names[0] + " has left the CRUSH map too, but its Node still exists: it may come back until " + fsm.Stamp(until(kept))
	}
	return "hosts " + strings.Join(names, ", ") + " have left the CRUSH map too, but their Nodes still exist: they may come back until " + fsm.Stamp(until(kept))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hostsOfNodes are the hosts in the CRUSH map that the nodes are which exist, ready or not, by
// each of the names that they may have there.
func hostsOfNodes(w *fsm.World) map[string]*fsm.Thing {
	there := map[string]*fsm.Thing{}
	for t := range w.Members(nodes) {
		for _, name := range []string{hostname(t), t.Name} {
			there[name], there[journal.CrushName(name)] = t, t
		}
	}
	return there
}

// crushOf returns the hosts in the CRUSH map.
func crushOf(facts journal.RookFacts) []string {
	if facts.Ceph == nil {
		return nil
	}
	return facts.Ceph.Crush
}

func hostsGone(names []string) string {
	if len(names) == 1 {
		return "host " + names[0] + " is"
	}
	return "hosts " + strings.Join(names, ", ") + " are"
}

// outdatedLowering says why the copies are not to be lowered any more, or "".
func outdatedLowering(t *fsm.Thing, change journal.RookChange, w *fsm.World) string {
	asked, is := wishFewer(t, w)
	switch {
	case !policyOf(w).has(t.Subject):
		return "the configuration no longer has this pool"
	case !is:
		return "it no longer has too many copies for the hosts that are left"
	case len(asked.kept) > 0:
		return mayReturn(asked.kept)
	case asked.to != change.To():
		return "EKCO now wants " + asked.to
	}
	return ""
}
