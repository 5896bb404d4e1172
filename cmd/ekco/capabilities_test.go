package main

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestEveryTypeOfTheCatalogueHasARowOfWords(t *testing.T) {
	v := capabilities(cluster{}).Vocabulary()
	for _, entry := range journal.Catalog() {
		if !v.Has(entry.Type) {
			t.Errorf("%s has no row: it is listed, field by field, and neither logged nor coloured", entry.Type)
		}
	}
}

func TestEveryKindOfActionOfTheListHasAVerb(t *testing.T) {
	v := capabilities(cluster{}).Vocabulary()
	for _, machine := range capabilities(cluster{}).Machines() {
		for _, kind := range machine.Kinds {
			if v.Verb(kind.Name) == string(kind.Name) {
				t.Errorf("nobody has a word for what %s does", kind.Name)
			}
		}
	}
}

func TestEveryKindOfActionHasAVerb(t *testing.T) {
	v := capabilities(cluster{}).Vocabulary()
	for kind, want := range map[journal.ActionKind]string{journal.ActionClearNode: "clear", journal.ActionPurgeNode: "purge"} {
		if got := v.Verb(kind); got != want {
			t.Errorf("the verb of %s is %q, want %q", kind, got, want)
		}
		if got := v.Target(kind, journal.ClusterSubject); got != "any node" {
			t.Errorf("%s is done to %q, want \"any node\"", kind, got)
		}
	}
}
