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

// lowerDelay is how long a host must be gone before EKCO lowers copies. During this time the status shows the
// difference, and a person can finish the replacement of the host.
const lowerDelay = 30 * time.Second

// maxLeft is the maximum length of Resource.Left. The newest hosts are kept.
const maxLeft = 64

// leftHost is a host that has left the CRUSH map.
type leftHost struct {
	Host string `json:"host"`
	// Seq is the event that reported that the host has left. At is when EKCO saw it.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

// heldNumber is the observed value of a number. Seq is the event that first had this value.
type heldNumber struct {
	Number int    `json:"number"`
	Seq    uint64 `json:"seq"`
}

// Observed implements [fsm.Machine]. It also stores which hosts have left the CRUSH map, and when each number was set,
// because EKCO does not lower a number that was set after a host left: such a value is intended.
func (m machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	r := of(t)
	before := crushHosts(r.Facts)
	if err := m.Objects.Observed(t, e, facts); err != nil {
		return err
	}
	r.updateLeft(before, e)
	r.recordNumbers(e)
	return nil
}

// updateLeft updates Left and Crush after new facts. before are the hosts in the CRUSH map in the former facts.
func (r *Resource) updateLeft(before []string, e journal.Event) {
	now := crushHosts(r.Facts)
	if len(namesWithout(now, before)) > 0 || len(namesWithout(before, now)) > 0 {
		r.Crush = e.Seq
	}
	r.Left = slices.DeleteFunc(r.Left, func(l leftHost) bool { return slices.Contains(now, l.Host) })
	for _, host := range before {
		if !slices.Contains(now, host) {
			r.Left = append(r.Left, leftHost{Host: host, Seq: e.Seq, At: e.Time})
		}
	}
	r.Left = r.Left[max(0, len(r.Left)-maxLeft):]
}

// recordNumbers updates Held, which says when each number got its value. A number that EKCO has lowered only in part
// keeps the event of its former value, so that EKCO can lower it further.
func (r *Resource) recordNumbers(e journal.Event) {
	holds := make(map[string]heldNumber, len(r.Facts.Numbers))
	for place, number := range r.Facts.Numbers {
		if holds[place] = r.Held[place]; r.Held[place].Number == number {
			continue
		}
		holds[place] = heldNumber{Number: number, Seq: e.Seq}
		if r.Partly[place].Number == number {
			holds[place] = r.Partly[place]
		}
		delete(r.Partly, place)
	}
	r.Held = holds
}

func (machine) Opened(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || !change.Partly {
		return
	}
	r := of(t)
	if r.Partly == nil {
		r.Partly = map[string]heldNumber{}
	}
	for place, number := range change.Numbers {
		r.Partly[place] = heldNumber{Number: number.To, Seq: r.Held[place].Seq}
	}
}

// removeFromPartly removes the numbers of an action from Partly, if the action did not lower them.
func (r *Resource) removeFromPartly(rec *journal.ActionRecord) {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err == nil && change.Partly && !r.Made[rec.Kind] {
		maps.DeleteFunc(r.Partly, func(place string, _ heldNumber) bool { _, is := change.Numbers[place]; return is })
	}
}

func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) {
	for i := range of(t).Left {
		visit(&of(t).Left[i].At)
	}
}

// returnTimeout is how long EKCO waits for a host that has left the CRUSH map and whose Node exists, before it lowers
// copies. A person may be replacing the host's disks or reinstalling the host.
const returnTimeout = 24 * time.Hour

// wishFewer returns the change that lowers the copies of a pool to the number of remaining hosts, after a host was lost
// for good: it is not in the CRUSH map, and no Node has its name. wishFewer returns one number at a time, and numbers
// that wait for a host to return come last.
//
// It lowers a number only if the number had this value while the host was still there, because a person set a newer
// value on purpose. It skips pools that Ceph does not have under the name that Rook uses, and pools whose copies may
// share a host: such an action could not begin, and all other actions of the kind would have to wait. The result is
// never below the number of hosts in the CRUSH map, running or not, so that it does not conflict with [wishCopies].
func wishFewer(t *fsm.Thing, w *fsm.World) (waiting wish, is bool) {
	for _, place := range placesOf(of(t).Now().Numbers) {
		asked, asks := wishFewerAt(t, place, w)
		switch {
		case asks && len(asked.awaited) == 0:
			return asked, true
		case asks && !is:
			waiting, is = asked, true
		}
	}
	return waiting, is
}

// wishFewerAt returns the change of [wishFewer] for one number.
func wishFewerAt(t *fsm.Thing, place string, w *fsm.World) (wish, bool) {
	p := policyOf(w)
	ceph := findThing(w, journal.RookCeph)
	if ceph == nil || !p.hasPool(t.Subject) {
		return wish{}, false
	}
	hosts := len(crushHosts(of(ceph).Facts))
	if hosts == 0 || !hasCopyPerHost(madeOf(of(ceph).Facts.Ceph, t.Subject, of(t).Now().Names, place)) {
		return wish{}, false // the loss of a host does not reduce the possible copies, or this is unknown
	}
	now := of(t).Now().Numbers[place]
	gone, since, back := goneSince(of(ceph).Left, of(t).heldSince(place), w)
	to := max(p.MinCopies, hosts, minNumber(of(t).Now(), place))
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
		kind: journal.ActionLowerCopies, change: change, due: since.Add(lowerDelay), awaited: back,
		why:   fmt.Sprintf("%s gone for good, and the CRUSH map has %s left, so it should have %s, and has %s", goneText(gone), words.Count(hosts, "host"), change.To(), change.From()),
		field: "the copies of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), about: withHosts(place, w),
	}, true
}

// hasCopyPerHost reports whether Ceph puts each copy of these pools on a different host, and may use any host. It
// returns false if there are no pools.
func hasCopyPerHost(pools []journal.CephPool) bool {
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

// heldSince returns the event that first had the number's present value, or the maximum number if EKCO has not observed
// the value yet.
func (r *Resource) heldSince(place string) uint64 {
	if held, known := r.Held[place]; known && held.Number == r.Now().Numbers[place] {
		return held.Seq
	}
	return ^uint64(0)
}

// goneSince returns the hosts that left the CRUSH map after the event and are lost for good, and when the last of them
// left. back are the hosts that have left the CRUSH map but may return.
func goneSince(all []leftHost, after uint64, w *fsm.World) (gone []string, since time.Time, back []leftHost) {
	there := nodesByHost(w)
	for _, l := range all {
		switch node := there[l.Host]; {
		case node != nil && l.mayReturn(node, w):
			back = append(back, l)
		case node == nil && l.Seq > after:
			gone = append(gone, l.Host)
			since = later(since, l.At)
		}
	}
	return gone, since, back
}

// mayReturn reports whether a host whose Node exists may return to the CRUSH map: it left less than returnTimeout ago,
// and Ceph may use it.
func (l leftHost) mayReturn(node *fsm.Thing, w *fsm.World) bool {
	return w.Now.Before(l.At.Add(returnTimeout)) && mayStore(node, w)
}

// mayStore reports whether Ceph may use the node, or EKCO would add it to the list of storage nodes.
func mayStore(node *fsm.Thing, w *fsm.World) bool {
	now, _ := cluster(w)
	storage, p := now.Storage, policyOf(w)
	return storage == nil || storage.AllNodes || storage.Lists(hostname(node)) || storage.Lists(node.Name) || !p.UserManaged && hasStorageLabel(node, p)
}

// waitEnd returns the earliest time at which EKCO stops waiting for one of the hosts.
func waitEnd(awaited []leftHost) (first time.Time) {
	for _, l := range awaited {
		if at := l.At.Add(returnTimeout); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// awaitedHosts returns a text that says for which hosts EKCO waits, and until when.
func awaitedHosts(awaited []leftHost) string {
	names := make([]string, len(awaited))
	for i, l := range awaited {
		names[i] = l.Host
	}
	if len(names) == 1 {
		return "host " + names[0] + " has left the CRUSH map too, but its Node still exists: it may come back until " + fsm.Stamp(waitEnd(awaited))
	}
	return "hosts " + strings.Join(names, ", ") + " have left the CRUSH map too, but their Nodes still exist: they may come back until " + fsm.Stamp(waitEnd(awaited))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nodesByHost returns the existing nodes, ready or not, by each name that a node's host may have in the CRUSH map.
func nodesByHost(w *fsm.World) map[string]*fsm.Thing {
	there := map[string]*fsm.Thing{}
	for t := range w.Members(nodeMachine) {
		for _, name := range []string{hostname(t), t.Name} {
			there[name], there[journal.CrushName(name)] = t, t
		}
	}
	return there
}

func crushHosts(facts journal.RookFacts) []string {
	if facts.Ceph == nil {
		return nil
	}
	return facts.Ceph.Crush
}

func goneText(names []string) string {
	if len(names) == 1 {
		return "host " + names[0] + " is"
	}
	return "hosts " + strings.Join(names, ", ") + " are"
}

// outdatedLowering returns why an action that lowers copies is no longer needed, or "".
func outdatedLowering(t *fsm.Thing, change journal.RookChange, w *fsm.World) string {
	asked, is := wishFewer(t, w)
	switch {
	case !policyOf(w).hasPool(t.Subject):
		return "the configuration no longer has this pool"
	case !is:
		return "it no longer has too many copies for the hosts that are left"
	case len(asked.awaited) > 0:
		return awaitedHosts(asked.awaited)
	case asked.to != change.To():
		return "EKCO now wants " + asked.to
	}
	return ""
}
