package rook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Details implements [fsm.Machine].
func (machine) Details(t *fsm.Thing, w *fsm.World) (lines []string) {
	switch t.Kind {
	case journal.RookCeph.Kind:
		return append(cephDetails(of(t).Facts, w), waits(t, w)...)
	case journal.RookCluster.Kind:
		lines = clusterDetails(of(t).Now(), w)
	}
	lines = append(lines, numberDetails(t, w)...)
	return append(lines, waits(t, w)...)
}

// cephDetails says what Ceph has.
func cephDetails(facts journal.RookFacts, w *fsm.World) []string {
	lines := []string{"hosts with OSDs that are up and in: " + some(facts.Hosts)}
	said := facts.Ceph
	if said == nil {
		return lines
	}
	if idle := without(said.Occupied, facts.Hosts); len(idle) > 0 {
		lines = append(lines, "hosts whose OSDs are all down or out: "+some(idle))
	}
	if said.Version != "" {
		lines = append(lines, "Ceph "+said.Version)
	}
	lines = append(lines, health(said))
	for _, pool := range said.Pools {
		line := fmt.Sprintf("pool %s keeps %s and serves with %d", pool.Name, copies(pool.Size), pool.MinSize)
		if shall := poolsOf(w, facts).wanted(pool); shall != pool.Size {
			line += fmt.Sprintf(", EKCO wants %s", copies(shall))
		}
		lines = append(lines, line)
	}
	return lines
}

// clusterDetails says which nodes Ceph may use, and which of them it does not.
func clusterDetails(facts journal.RookFacts, w *fsm.World) (lines []string) {
	if facts.Version != "" {
		lines = append(lines, "Rook "+facts.Version)
	}
	if facts.Storage == nil {
		return lines
	}
	lines = append(lines, stored(facts.Storage))
	if without := withoutOSD(facts.Storage, w); len(without) > 0 {
		lines = append(lines, "listed, but without an OSD: "+some(without)+" (Rook needs a free disk there, and some minutes)")
	}
	return lines
}

// withoutOSD returns the nodes that are listed and have no OSD; none if nobody knows.
func withoutOSD(storage *journal.RookStorage, w *fsm.World) (names []string) {
	said, _ := saidByCeph(w)
	if said == nil || storage.AllNodes {
		return nil
	}
	occupied := map[string]bool{}
	for _, host := range said.Occupied {
		occupied[journal.CrushName(host)] = true
	}
	for _, name := range storage.Nodes {
		if !occupied[journal.CrushName(name)] {
			names = append(names, name)
		}
	}
	return names
}

// numberDetails says of each number what Rook is asked for, what Ceph has, and what it shall be.
func numberDetails(t *fsm.Thing, w *fsm.World) (lines []string) {
	said, _ := saidByCeph(w)
	now := of(t).Now()
	for _, place := range slices.Sorted(maps.Keys(now.Numbers)) {
		line := fmt.Sprintf("%s: Rook is asked for %d", journal.RookNumberName(place), now.Numbers[place])
		if now.Numbers[place] == 0 {
			line = journal.RookNumberName(place) + ": not set, so Rook uses 1"
		}
		for _, pool := range madeOf(said, t.Subject, now.Names, place) {
			if pool.Size != now.Numbers[place] {
				line += fmt.Sprintf(", Ceph keeps %s of %s", copies(pool.Size), pool.Name)
			}
		}
		if shall := shallBe(t, place, w); shall != now.Numbers[place] {
			line += fmt.Sprintf(", EKCO wants %d", shall)
		}
		lines = append(lines, line)
	}
	return lines
}

// shallBe returns what EKCO wants a number to be, which is what it is where nothing is wanted.
func shallBe(t *fsm.Thing, place string, w *fsm.World) int {
	now := of(t).Now().Numbers[place]
	shall, known := wanted(t, place, w)
	if !known {
		return now
	}
	if fewer, is := wishFewerAt(t, place, w); is {
		return fewer.change.Numbers[place].To
	}
	if leftAlone(t, place, w) {
		return now
	}
	return max(now, shall)
}

// leftAlone reports whether Ceph keeps a pool of the number in more copies than Rook would be asked
// for, so that nothing is asked for.
func leftAlone(t *fsm.Thing, place string, w *fsm.World) bool {
	said, _ := saidByCeph(w)
	now := of(t).Now()
	shall, known := wanted(t, place, w)
	keeps, _ := most(said, t.Subject, now.Names, place)
	return known && now.Numbers[place] < shall && shall < keeps
}

// wanted returns what a number shall be at least by the hosts that there are, and whether anybody
// knows.
func wanted(t *fsm.Thing, place string, w *fsm.World) (shall int, known bool) {
	count, known := hosts(w)
	p := policyOf(w)
	switch {
	case !known || p.Off != "" || !looksAfter(w):
		return 0, false
	case t.Kind == journal.RookCluster.Kind:
		return daemons(place, count), true
	}
	return p.copies(count), p.has(t.Subject)
}

// waits says why what is wished of the thing is not done.
func waits(t *fsm.Thing, w *fsm.World) (lines []string) {
	for _, asked := range wishes(t, w) {
		if why := refused(t, asked, w); why != "" {
			lines = append(lines, "waits: "+why)
		}
	}
	for _, rec := range w.Open(t) {
		for _, step := range slices.Sorted(maps.Keys(rec.Holds)) {
			lines = append(lines, fmt.Sprintf("%s waits: %s", rec.ID, rec.Holds[step].Reason))
		}
	}
	return lines
}

// refused says why EKCO does not ask for what is wished of the thing, or "".
func refused(t *fsm.Thing, asked wish, w *fsm.World) string {
	for _, refusal := range w.Refusals {
		about := w.Things[fsm.Key(refusal.Subject)] // nil for what is refused to all
		if refusal.Kind == asked.kind && (about == nil || about == t) {
			return refusal.Reason
		}
	}
	due, _ := again(t, asked, w.Policy)
	if due = later(due, asked.due); w.Now.Before(due) && !isOpen(t, asked.kind, w) {
		return "EKCO sets " + asked.to + " at " + fsm.Stamp(due) + " if that is still needed"
	}
	return ""
}

// Measures implements [fsm.Machine].
func (machine) Measures(t *fsm.Thing, w *fsm.World, tell func(fsm.Measure)) {
	if t.Kind == journal.RookCeph.Kind {
		facts := of(t).Facts
		tell(fsm.Measure{Name: "rook_storage_hosts", Help: "Hosts with OSDs that are up and in.", Value: float64(len(facts.Hosts))})
		if facts.Ceph != nil {
			tell(fsm.Measure{Name: "rook_ceph_health", Help: "Ceph's health: 0 is HEALTH_OK, 1 HEALTH_WARN, 2 HEALTH_ERR or unknown.", Value: gravity(facts.Ceph.Health)})
			for _, pool := range facts.Ceph.Pools {
				tell(fsm.Measure{Name: "rook_pool_size_present", Help: "Copies that Ceph keeps of the data in a pool.", Label: "pool", Of: pool.Name, Value: float64(pool.Size)})
				if shall, is := poolShallBe(pool, facts, w); is {
					tell(fsm.Measure{Name: "rook_pool_size_wanted", Help: "Copies of the data in a pool that EKCO wants Ceph to keep.", Label: "pool", Of: pool.Name, Value: float64(shall)})
				}
			}
		}
	}
}

// poolShallBe returns in how many copies EKCO wants Ceph to keep a pool: those that it sets by
// command, or that Rook shall make of a custom resource; false for a pool that is neither's.
func poolShallBe(pool journal.CephPool, facts journal.RookFacts, w *fsm.World) (shall int, is bool) {
	if all := poolsOf(w, facts); all.sets(pool) {
		return all.wanted(pool), true
	}
	for _, configured := range policyOf(w).Pools {
		t := one(w, configured)
		if t == nil {
			continue
		}
		for _, place := range placesOf(of(t).Now().Numbers) {
			switch {
			case !of(t).Now().Names.Make(t.Subject, place, pool.Name):
			case leftAlone(t, place, w):
				return pool.Size, true
			default:
				return shallBe(t, place, w), true
			}
		}
	}
	return 0, false
}

// gravity is how bad Ceph's health is; what is unknown is bad.
func gravity(health string) float64 {
	switch health {
	case "HEALTH_OK":
		return 0
	case "HEALTH_WARN":
		return 1
	}
	return 2
}

// without returns those of the names that are not among the others.
func without(names, others []string) []string {
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}

// mostNamed is how many names a line has at most.
const mostNamed = 20

// some lists the first of the names, and says how many more there are.
func some(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > mostNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}
