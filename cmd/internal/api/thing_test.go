package api

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestAThingIsExplainedByWhatConcernsItAlone(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := fsm.NewState(fsmnode.Capability())
	old := s.Add(fsmnode.Machine, journal.NodeSubject("w", "u-old"), fsmnode.Gone, now)
	old.FactsSeq, old.GoneSeq = 1, 2
	node := s.Add(fsmnode.Machine, journal.NodeSubject("w", "u-new"), fsmnode.Unknown, now)
	node.FactsSeq = 3
	node.Contests = map[string]*fsm.Contest{
		"b": {Action: "a-1", Last: now, Pauses: 1}, "a": {Action: "a-2", Last: now, Before: now.Add(-time.Minute)}, "undisputed": {Last: now},
	}
	s.Add(fsmnode.Machine, journal.NodeSubject("x", "u-x"), fsmnode.Unknown, now)
	for id, uid := range map[string]string{"purge-w-1": "u-new", "purge-x-1": "u-x"} {
		s.Actions[id] = &journal.ActionRecord{ID: id, Kind: journal.ActionPurgeNode, Subject: journal.Subject{Kind: "Node", Name: id[6:7], UID: uid}}
	}
	s.Refusals = []fsm.Refusal{
		{Rule: "about all nodes", Kind: journal.ActionPurgeNode, Subject: journal.ClusterSubject},
		{Rule: "about it", Kind: journal.ActionClearNode, Subject: node.Subject},
		{Rule: "about another", Kind: journal.ActionClearNode, Subject: journal.NodeSubject("x", "u-x")},
		{Rule: "about lamps", Kind: "light-lamp", Subject: journal.ClusterSubject},
	}
	got, err := ExplainThings(s, now, ThingRequest{Kind: "NODE", Name: "w"})
	if err != nil || len(got) != 2 || got[0].Subject.UID != "u-new" || got[1].GoneSeq != 2 {
		t.Fatalf("%v: explained are %+v", err, got)
	}
	var refusals, contests []string
	for _, refusal := range got[0].Refusals {
		refusals = append(refusals, refusal.Rule)
	}
	for _, contest := range got[0].Contests {
		contests = append(contests, contest.Key)
	}
	if !slices.Equal(refusals, []string{"about all nodes", "about it"}) || !slices.Equal(contests, []string{"a", "b"}) {
		t.Errorf("refusals %q, contests %q", refusals, contests)
	}
	if len(got[0].Actions) != 1 || got[0].Actions[0].ID != "purge-w-1" || len(got[1].Actions)+len(got[1].Refusals) != 0 {
		t.Errorf("explained are %+v", got)
	}
	if got, err = ExplainThings(s, now, ThingRequest{Action: "purge-w-1"}); err != nil || len(got) != 1 || got[0].Subject.UID != "u-new" {
		t.Errorf("%v: of an action: %+v", err, got)
	}
	for want, request := range map[string]ThingRequest{
		"EKCO knows no node v; did you mean node/w or node/x?": {Kind: "node", Name: "v"},
		"EKCO knows no lamp w":                                 {Kind: "lamp", Name: "w"},
		"no such open action; did you mean purge-w-1":          {Action: "purge-w-2"},
	} {
		if _, err := ExplainThings(s, now, request); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", request, err)
		}
	}
}
