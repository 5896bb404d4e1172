package rook

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for Rook's storage and the actions about it.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionAddStorageNodes, Verb: "add storage nodes to", Noun: "Rook storage"},
		{Kind: journal.ActionRaiseCopies, Verb: "raise the copies of", Noun: "Rook storage"},
		{Kind: journal.ActionAddCephDaemons, Verb: "add daemons to", Noun: "Rook storage"},
		{Kind: journal.ActionLowerCopies, Verb: "lower the copies of", Noun: "Rook storage"},
		{Kind: journal.ActionSetCephPools, Verb: "set pools of", Noun: "Rook storage"},
	},
	APIVersions: map[string]string{
		journal.RookCluster.Kind: "ceph.rook.io/v1", journal.KindCephBlockPool: "ceph.rook.io/v1",
		journal.KindCephFilesystem: "ceph.rook.io/v1", journal.KindCephObjectStore: "ceph.rook.io/v1",
	},
	Rows: slices.Concat(
		rows(journal.RookCluster.Kind, factsSentence), rows(journal.KindCephBlockPool, factsSentence), rows(journal.KindCephFilesystem, factsSentence),
		rows(journal.KindCephObjectStore, factsSentence), rows(journal.RookCeph.Kind, cephSentence),
	),
}

func rows(about string, says func(journal.RookFacts) string) []words.Row {
	return []words.Row{words.Transition(about, words.IsNow("")), words.Observed(about, says), words.Gone(about)}
}

func factsSentence(facts journal.RookFacts) string {
	var asked []string
	for _, place := range slices.Sorted(maps.Keys(facts.Numbers)) {
		asked = append(asked, fmt.Sprintf("%s %d", journal.RookNumberName(place), facts.Numbers[place]))
	}
	if facts.Storage != nil {
		asked = append(asked, storageText(facts.Storage))
	}
	if facts.Version != "" {
		asked = append(asked, "Rook "+facts.Version)
	}
	if facts.Unversioned != "" {
		asked = append(asked, facts.Unversioned)
	}
	if len(asked) == 0 {
		asked = []string{"nothing that EKCO changes"}
	}
	return "asks Rook for " + strings.Join(asked, ", ")
}

// storageText returns a text that says which nodes Ceph may use.
func storageText(storage *journal.RookStorage) string {
	switch {
	case storage.AllNodes:
		return "storage on all nodes"
	case storage.Claims:
		return "storage on PersistentVolumeClaims"
	case len(storage.Nodes) == 0:
		return "storage on no node"
	}
	return "storage on " + strings.Join(storage.Nodes, ", ")
}

func cephSentence(facts journal.RookFacts) string {
	text := "has no OSD that is up and in"
	if len(facts.Hosts) > 0 {
		text = "has OSDs that are up and in on " + strings.Join(facts.Hosts, ", ")
	}
	if ceph := facts.Ceph; ceph != nil {
		text += "; " + healthText(ceph)
		for _, pool := range ceph.Pools {
			text += "; pool " + pool.Name + " keeps " + copiesText(pool.Size)
		}
	}
	return text
}

func copiesText(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return strconv.Itoa(n) + " copies"
}

// healthText returns a text about Ceph's health, with the failed checks.
func healthText(ceph *journal.CephFacts) string {
	text := "it is " + ceph.Health
	if len(ceph.Checks) > 0 {
		text += " (" + strings.Join(ceph.Checks, ", ") + ")"
	}
	return text
}
