package rook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func (machine) Details(t *fsm.Thing, w *fsm.World) (lines []string) {
	switch t.Kind {
	case journal.RookCeph.Kind:
		return append(cephDetails(of(t).Facts, w), waitLines(t, w)...)
	case journal.RookCluster.Kind:
		lines = clusterDetails(of(t).Now(), w)
	}
	lines = append(lines, numberDetails(t, w)...)
	return append(lines, waitLines(t, w)...)
}

func cephDetails(facts journal.RookFacts, w *fsm.World) []string {
	lines := []string{"hosts with OSDs that are up and in: " + listNames(facts.Hosts)}
	reported := facts.Ceph
	if reported == nil {
		return lines
	}
	if idle := namesWithout(reported.Occupied, facts.Hosts); len(idle) > 0 {
		lines = append(lines, "hosts whose OSDs are all down or out: "+listNames(idle))
	}
	if reported.Version != "" {
		lines = append(lines, "Ceph "+reported.Version)
	}
	lines = append(lines, healthText(reported))
	for _, pool := range reported.Pools {
		line := fmt.Sprintf("pool %s keeps %s and serves with %d", pool.Name, copiesText(pool.Size), pool.MinSize)
		if target := poolsOf(w, facts).wantedCopies(pool); target != pool.Size {
			line += fmt.Sprintf(", EKCO wants %s", copiesText(target))
		}
		lines = append(lines, line)
	}
	return lines
}

// clusterDetails returns the lines that say which nodes Ceph may use, and which listed nodes have no OSD.
func clusterDetails(facts journal.RookFacts, w *fsm.World) (lines []string) {
	if facts.Version != "" {
		lines = append(lines, "Rook "+facts.Version)
	}
	if facts.Storage == nil {
		return lines
	}
	lines = append(lines, storageText(facts.Storage))
	if without := withoutOSD(facts.Storage, w); len(without) > 0 {
		lines = append(lines, "listed, but without an OSD: "+listNames(without)+" (Rook needs a free disk there, and some minutes)")
	}
	return lines
}

// withoutOSD returns the listed nodes without an OSD, or nil if Ceph has not reported.
func withoutOSD(storage *journal.RookStorage, w *fsm.World) (names []string) {
	reported, _ := cephFacts(w)
	if reported == nil || storage.AllNodes {
		return nil
	}
	occupied := map[string]bool{}
	for _, host := range reported.Occupied {
		occupied[journal.CrushName(host)] = true
	}
	for _, name := range storage.Nodes {
		if !occupied[journal.CrushName(name)] {
			names = append(names, name)
		}
	}
	return names
}

// numberDetails returns a line for each number with its value in the resource, its value in Ceph, and EKCO's target.
func numberDetails(t *fsm.Thing, w *fsm.World) (lines []string) {
	reported, _ := cephFacts(w)
	now := of(t).Now()
	for _, place := range slices.Sorted(maps.Keys(now.Numbers)) {
		line := fmt.Sprintf("%s: Rook is asked for %d", journal.RookNumberName(place), now.Numbers[place])
		if now.Numbers[place] == 0 {
			line = journal.RookNumberName(place) + ": not set, so Rook uses 1"
		}
		for _, pool := range madeOf(reported, t.Subject, now.Names, place) {
			if pool.Size != now.Numbers[place] {
				line += fmt.Sprintf(", Ceph keeps %s of %s", copiesText(pool.Size), pool.Name)
			}
		}
		if target := numberTarget(t, place, w); target != now.Numbers[place] {
			line += fmt.Sprintf(", EKCO wants %d", target)
		}
		lines = append(lines, line)
	}
	return lines
}

// numberTarget returns the value that EKCO wants for a number, or the present value if EKCO wants no change.
func numberTarget(t *fsm.Thing, place string, w *fsm.World) int {
	now := of(t).Now().Numbers[place]
	target, known := wantedMinimum(t, place, w)
	if !known {
		return now
	}
	if fewer, is := wishFewerAt(t, place, w); is {
		return fewer.change.Numbers[place].To
	}
	if isLeftUnchanged(t, place, w) {
		return now
	}
	return max(now, target)
}

// isLeftUnchanged reports whether EKCO does not change a number because Ceph has more copies of one of its pools than
// EKCO would set.
func isLeftUnchanged(t *fsm.Thing, place string, w *fsm.World) bool {
	reported, _ := cephFacts(w)
	now := of(t).Now()
	target, known := wantedMinimum(t, place, w)
	keeps, _ := largestPool(reported, t.Subject, now.Names, place)
	return known && now.Numbers[place] < target && target < keeps
}

// wantedMinimum returns the minimum of a number for the present hosts, and false if it is unknown or EKCO does not
// manage it.
func wantedMinimum(t *fsm.Thing, place string, w *fsm.World) (target int, known bool) {
	count, known := countUpHosts(w)
	p := policyOf(w)
	switch {
	case !known || p.Off != "" || !managesCluster(w):
		return 0, false
	case t.Kind == journal.RookCluster.Kind:
		return minDaemons(place, count), true
	}
	return p.copies(count), p.hasPool(t.Subject)
}

// waitLines returns lines that say why EKCO does not make the changes that it wants now.
func waitLines(t *fsm.Thing, w *fsm.World) (lines []string) {
	for _, asked := range wishes(t, w) {
		if why := refusedReason(t, asked, w); why != "" {
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

// refusedReason returns why EKCO does not request this change now, or "".
func refusedReason(t *fsm.Thing, asked wish, w *fsm.World) string {
	for _, refusal := range w.Refusals {
		about := w.Things[fsm.Key(refusal.Subject)] // nil for a refusal that applies to all things
		if refusal.Kind == asked.kind && (about == nil || about == t) {
			return refusal.Reason
		}
	}
	due, _ := repeatDue(t, asked, w.Policy)
	if due = later(due, asked.due); w.Now.Before(due) && !isOpen(t, asked.kind, w) {
		return "EKCO sets " + asked.to + " at " + fsm.Stamp(due) + " if that is still needed"
	}
	return ""
}

func (machine) Measures(t *fsm.Thing, w *fsm.World, tell func(fsm.Measure)) {
	if t.Kind == journal.RookCeph.Kind {
		facts := of(t).Facts
		tell(fsm.Measure{Name: "rook_storage_hosts", Help: "Hosts with OSDs that are up and in.", Value: float64(len(facts.Hosts))})
		if facts.Ceph != nil {
			tell(fsm.Measure{Name: "rook_ceph_health", Help: "Ceph's health: 0 is HEALTH_OK, 1 HEALTH_WARN, 2 HEALTH_ERR or unknown.", Value: healthValue(facts.Ceph.Health)})
			for _, pool := range facts.Ceph.Pools {
				tell(fsm.Measure{Name: "rook_pool_size_present", Help: "Copies that Ceph keeps of the data in a pool.", Label: "pool", Of: pool.Name, Value: float64(pool.Size)})
				if target, is := poolTarget(pool, facts, w); is {
					tell(fsm.Measure{Name: "rook_pool_size_wanted", Help: "Copies of the data in a pool that EKCO wants Ceph to keep.", Label: "pool", Of: pool.Name, Value: float64(target)})
				}
			}
		}
	}
}

// poolTarget returns how many copies of a pool EKCO wants, for a pool whose copies EKCO sets by command or Rook sets
// from a custom resource. It returns false for other pools.
func poolTarget(pool journal.CephPool, facts journal.RookFacts, w *fsm.World) (target int, is bool) {
	if all := poolsOf(w, facts); all.setsByCommand(pool) {
		return all.wantedCopies(pool), true
	}
	for _, configured := range policyOf(w).Pools {
		t := findThing(w, configured)
		if t == nil {
			continue
		}
		for _, place := range placesOf(of(t).Now().Numbers) {
			switch {
			case !of(t).Now().Names.IsPoolFor(t.Subject, place, pool.Name):
			case isLeftUnchanged(t, place, w):
				return pool.Size, true
			default:
				return numberTarget(t, place, w), true
			}
		}
	}
	return 0, false
}

// healthValue returns Ceph's health as a number for the metric. An unknown health counts as HEALTH_ERR.
func healthValue(health string) float64 {
	switch health {
	case "HEALTH_OK":
		return 0
	case "HEALTH_WARN":
		return 1
	}
	return 2
}

// namesWithout returns the names that are not among the others.
func namesWithout(names, others []string) []string {
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}

// maxNames limits how many names a line has.
const maxNames = 20

// listNames returns a text with the first maxNames names, and how many more there are.
func listNames(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > maxNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}
