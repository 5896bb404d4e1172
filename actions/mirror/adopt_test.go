package mirror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

func planned(record journal.ActionRecord) journal.ActionRecord {
	record.Planned = true
	record.Plan = journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-node", Does: "delete-node"}}}
	return record
}

func mirrorOf(journalID string, actions ...journal.ActionRecord) mirror.Content {
	return mirror.Content{Format: 1, JournalID: journalID, ClusterUID: "c1", Actions: actions}
}

// endedThere is the mirror of another journal that has ended the actions.
func endedThere(outcome journal.Outcome, ids ...string) mirror.Content {
	content := mirrorOf("other")
	for _, id := range ids {
		content.Ended = append(content.Ended, mirror.EndedAction{ID: id, UID: "uid-w1", Outcome: outcome, At: time.Unix(1, 0)})
	}
	return content
}

// ownEnded is the own journal's mirror of a time when it had ended the actions.
func ownEnded(outcome journal.Outcome, ids ...string) mirror.Content {
	content := endedThere(outcome, ids...)
	content.JournalID = "own"
	return content
}

// tell lists drafts as "type id".
func tell(drafts []journal.Draft) []string {
	var told []string
	for _, d := range drafts {
		told = append(told, fmt.Sprintf("%s %s", d.Type, d.Action))
	}
	return told
}

func TestAdoptionDependsOnWhoWroteTheMirrorAndWhatTheJournalHas(t *testing.T) {
	leftOut := mirrorOf("other", open("a", 5)) // what is open there has been taken up again
	leftOut.LeftOut = []string{"b"}
	leftOut.Ended = endedThere(journal.OutcomeDone, "a", "b").Ended
	underWay := endedThere(journal.OutcomeDone, "a")
	underWay.Actions = []journal.ActionRecord{planned(open("b", 5)), open("c", 6)}
	continued := mirrorOf("other", open("a", 9))
	continued.Covered = map[string]uint64{"own": 5}
	past := planned(open("a", 3))
	past.PastNoReturn = true
	begun := func(lastSeq uint64, note string) journal.ActionRecord {
		record := planned(open("a", lastSeq))
		record.Steps = map[string]journal.StepRecord{"delete-node": {Open: true, Outputs: json.RawMessage(note)}}
		return record
	}
	leaves := func(record journal.ActionRecord) journal.ActionRecord {
		record.Left = map[string]string{"osd.12": "it is bound to p9 now"}
		return record
	}
	otherNode := open("a", 3)
	otherNode.Subject = journal.NodeSubject("w1", "uid-of-its-successor")
	open3 := []journal.ActionRecord{open("a", 3)}
	ended := open("a", 5)
	ended.Ended = &journal.ActionEnded{Outcome: journal.OutcomeDone}
	for name, test := range map[string]struct {
		content mirror.Content
		own     []journal.ActionRecord
		options []mirror.AdoptOption
		want    []string
	}{
		"an empty journal adopts everything":                    {mirrorOf("other", open("a", 5), open("b", 7)), nil, nil, []string{"action.adopted a", "action.adopted b"}},
		"an ended action is not adopted":                        {mirrorOf("other", ended), nil, nil, nil},
		"an empty mirror teaches nothing":                       {mirrorOf("other"), nil, nil, nil},
		"the own mirror teaches nothing":                        {mirrorOf("own", open("a", 5)), nil, nil, nil},
		"the own mirror supersedes nothing":                     {mirrorOf("own"), []journal.ActionRecord{open("a", 5)}, nil, nil},
		"an action both have is left alone":                     {mirrorOf("other", planned(open("a", 5))), []journal.ActionRecord{planned(open("a", 3))}, nil, nil},
		"a plan is taken over by a record without one":          {mirrorOf("other", planned(open("a", 5))), []journal.ActionRecord{open("a", 3)}, nil, []string{"action.planned a"}},
		"a plan is taken over with what it leaves alone":        {mirrorOf("other", leaves(planned(open("a", 5)))), open3, nil, []string{"action.planned a", "action.left a"}},
		"what both leave alone is not said again":               {mirrorOf("other", leaves(open("a", 5))), []journal.ActionRecord{leaves(open("a", 3))}, nil, nil},
		"what the other does not know stays open":               {mirrorOf("other", open("b", 5)), open3, nil, []string{"action.adopted b"}},
		"what the other has done is superseded":                 {endedThere(journal.OutcomeDone, "a"), open3, nil, []string{"action.ended a"}},
		"what the other cancelled is superseded":                {endedThere(journal.OutcomeCancelled, "a"), open3, nil, []string{"action.ended a"}},
		"an id of another node's action says nothing":           {endedThere(journal.OutcomeDone, "a"), []journal.ActionRecord{otherNode}, nil, nil},
		"what another one ended says nothing":                   {endedThere(journal.OutcomeDone, "b"), open3, nil, nil},
		"what is past its point goes on though cancelled there": {endedThere(journal.OutcomeCancelled, "a"), []journal.ActionRecord{past}, nil, nil},
		"what is past its point goes on though abandoned there": {endedThere(journal.OutcomeAbandoned, "a"), []journal.ActionRecord{past}, nil, nil},
		"what is past its point and done there is superseded":   {endedThere(journal.OutcomeDone, "a"), []journal.ActionRecord{past}, nil, []string{"action.ended a"}},
		"what is past its point and unknown there stays open":   {mirrorOf("other"), []journal.ActionRecord{past}, nil, nil},
		"what has ended here is not adopted again":              {mirrorOf("other", open("a", 5), open("b", 6)), nil, []mirror.AdoptOption{mirror.EndedHere("a")}, []string{"action.adopted b"}},
		"what another one continued replaces the own record":    {continued, open3, nil, []string{"action.adopted a"}},
		"what has gone on here since stays":                     {continued, []journal.ActionRecord{open("a", 6)}, nil, nil},
		"what may be another event than the other knew stays":   {continued, open3, []mirror.AdoptOption{mirror.Kept(2)}, nil},
		"what is under way is left to its worker": {
			underWay, []journal.ActionRecord{open("a", 3), open("b", 4)}, []mirror.AdoptOption{mirror.UnderWay()}, []string{"action.adopted c"},
		},
		"what found no space is not superseded": {leftOut, []journal.ActionRecord{open("a", 3), open("b", 4)}, nil, nil},
		"a salvaged journal takes back what it lost": {
			mirrorOf("own", open("kept", 80), open("lost", 120)),
			[]journal.ActionRecord{open("kept", 80)},
			[]mirror.AdoptOption{mirror.Lost(100)},
			[]string{"action.adopted lost"},
		},
		"a salvaged journal adopts from another one, whose numbers are its own": {
			mirrorOf("other", open("a", 5)), nil, []mirror.AdoptOption{mirror.Lost(100)}, []string{"action.adopted a"},
		},
		"a salvaged journal keeps its ended actions ended": {
			mirrorOf("own", open("finished", 80)), nil, []mirror.AdoptOption{mirror.Lost(100)}, nil,
		},
		"a salvaged journal takes back a lost plan": {
			mirrorOf("own", planned(open("a", 120))),
			[]journal.ActionRecord{open("a", 80)},
			[]mirror.AdoptOption{mirror.Lost(100)},
			[]string{"action.adopted a"},
		},
		"a journal that lost events takes back what its action did since": {
			mirrorOf("own", past),
			[]journal.ActionRecord{planned(open("a", 2))},
			[]mirror.AdoptOption{mirror.Lost(2)},
			[]string{"action.adopted a"},
		},
		"a journal that lost events takes back more than its action did since": {
			mirrorOf("own", past), []journal.ActionRecord{planned(open("a", 7))}, []mirror.AdoptOption{mirror.Lost(2)}, []string{"action.adopted a"},
		},
		"a journal that lost events takes back what a step noted since": {
			mirrorOf("own", begun(9, "{}")), []journal.ActionRecord{begun(3, "")}, []mirror.AdoptOption{mirror.Lost(5)}, []string{"action.adopted a"},
		},
		"a journal that lost events keeps what its step noted since": {
			mirrorOf("own", begun(9, "{}")), []journal.ActionRecord{begun(7, "")}, []mirror.AdoptOption{mirror.Lost(5)}, nil,
		},
		"a journal that lost events keeps what it knows more of": {
			mirrorOf("own", planned(open("a", 9))), []journal.ActionRecord{past}, []mirror.AdoptOption{mirror.Lost(2)}, nil,
		},
		"a journal that lost events does not go on with what was cancelled": {
			ownEnded(journal.OutcomeCancelled, "a"), open3, []mirror.AdoptOption{mirror.Lost(3)}, []string{"action.ended a"},
		},
		"a journal that lost events does not go back on what is past its point": {
			ownEnded(journal.OutcomeCancelled, "a"), []journal.ActionRecord{past}, []mirror.AdoptOption{mirror.Lost(3)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			drafts, err := mirror.Adopt(test.content, test.own, "own", "c1", test.options...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tell(drafts); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheMirrorOfAnotherClusterIsRefusedByName(t *testing.T) {
	_, err := mirror.Adopt(mirrorOf("other", open("a", 5)), nil, "own", "c2")
	if !errors.Is(err, journal.ErrOtherCluster) || !strings.Contains(err.Error(), "c1") || !strings.Contains(err.Error(), "c2") {
		t.Errorf("got %v", err)
	}
	unknown := mirrorOf("other", open("a", 5))
	unknown.ClusterUID = ""
	for _, content := range []mirror.Content{unknown, mirrorOf("other", open("a", 5))} {
		uid := ""
		if content.ClusterUID == "" {
			uid = "c2"
		}
		if drafts, err := mirror.Adopt(content, nil, "own", uid); err != nil || len(drafts) != 1 {
			t.Errorf("an unknown cluster: %v, %v", tell(drafts), err)
		}
	}
}

func TestAdoptionFoldsIntoOpenActionsAndSupersededOnesEnd(t *testing.T) {
	mine := open("mine", 0)
	theirs := planned(open("theirs", 5))
	theirs.Steps = map[string]journal.StepRecord{"delete-node": {Attempts: 2, Open: true}}
	store := memory.New()
	request := journal.Draft{Type: journal.TypeActionRequested, Subject: mine.Subject, Action: mine.ID, Actor: "operator", Payload: mine.Request}
	content := endedThere(journal.OutcomeDone, "mine")
	content.Actions = []journal.ActionRecord{theirs}
	drafts, err := mirror.Adopt(content, []journal.ActionRecord{mine}, "own", "c1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), append([]journal.Draft{request}, drafts...)...); err != nil {
		t.Fatal(err)
	}
	state := fsm.NewState(fsmnode.Capability())
	for event, err := range store.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		state.Apply(event)
	}
	open := state.OpenActions()
	if len(open) != 1 || open[0].ID != "theirs" || !open[0].Steps["delete-node"].Open || !open[0].Planned {
		t.Errorf("open are %+v", open)
	}
	if len(state.Problems) > 0 {
		t.Errorf("problems %q", state.Problems)
	}
}

func TestWhatIsTakenBackFromATrimmedMirrorKeepsWhatTheJournalHasOfIt(t *testing.T) {
	older := planned(open("a", 3))
	older.Plan.Facts = []byte(`{"osds":[3]}`)
	older.Request.Input = journal.ClearInput{Pods: []journal.PodRef{{Name: "web-0"}}}
	older.Warned = []journal.Warning{{Preflight: "P"}}
	older.Steps = map[string]journal.StepRecord{
		"look": {DoneAt: time.Unix(1, 0), Outputs: []byte(`{"found":1}`)}, "unlist": {Attempts: 1, Open: true},
	}
	mirrored := planned(open("a", 9))
	mirrored.PastNoReturn = true
	mirrored.Steps = map[string]journal.StepRecord{
		"look": {DoneAt: time.Unix(1, 0)}, "unlist": {Attempts: 1, DoneAt: time.Unix(2, 0)}, "delete-node": {Open: true},
	}
	drafts, err := mirror.Adopt(mirrorOf("own", mirrored), []journal.ActionRecord{older}, "own", "c1", mirror.Lost(5))
	if err != nil || len(drafts) != 1 {
		t.Fatalf("got %q, %v", tell(drafts), err)
	}
	got := drafts[0].Payload.(journal.ActionAdopted).Record
	if !got.PastNoReturn || !got.Steps["delete-node"].Open || !got.Steps["unlist"].Done() || string(got.Steps["look"].Outputs) != `{"found":1}` ||
		string(got.Plan.Facts) != `{"osds":[3]}` || len(journal.ClearInputOf(got.Request).Pods) != 1 || len(got.Warned) != 1 {
		t.Errorf("taken back is %+v", got)
	}
}

// TestWhatASalvageLostOfARepeatedStepIsTakenBack, although the journal's older record has more done steps.
func TestWhatASalvageLostOfARepeatedStepIsTakenBack(t *testing.T) {
	older := planned(open("a", 3))
	older.Steps = map[string]journal.StepRecord{
		"look":    {DoneAt: time.Unix(1, 0), Outputs: []byte(`{"found":1}`)},
		"compare": {DoneAt: time.Unix(2, 0), Outputs: []byte(`{"missing":1}`)},
	}
	mirrored := planned(open("a", 9))
	mirrored.Forced = []journal.Forced{{Preflight: "P", Key: "list"}}
	mirrored.Steps = map[string]journal.StepRecord{
		"look": {Open: true, Outputs: []byte(`{"noted":2}`)}, "compare": {DoneAt: time.Unix(5, 0), Outputs: []byte(`{"missing":0}`)},
	}
	content := mirrorOf("own", mirrored)
	content.Carried = journal.Carried{Seq: 9, Pauses: map[string]journal.Pause{}}
	own := []journal.ActionRecord{older}
	drafts, err := mirror.Adopt(content, own, "own", "c1", mirror.Lost(5), mirror.Kept(5))
	if err != nil || len(drafts) != 1 {
		t.Fatalf("got %q, %v", tell(drafts), err)
	}
	got := drafts[0].Payload.(journal.ActionAdopted).Record
	if look, compare := got.Steps["look"], got.Steps["compare"]; look.Done() || string(look.Outputs) != `{"noted":2}` ||
		string(compare.Outputs) != `{"missing":0}` || len(got.Forced) != 1 {
		t.Errorf("taken back is %+v", got)
	}
	if drafts, err := mirror.Adopt(content, own, "own", "c1", mirror.Lost(5), mirror.Kept(0)); err != nil || len(drafts) != 0 {
		t.Errorf("what an older copy did since is replaced: %q, %v", tell(drafts), err)
	}
}

func TestAnActionThatTheJournalHadLostEndsAsItDid(t *testing.T) {
	drafts, err := mirror.Adopt(ownEnded(journal.OutcomeCancelled, "a"), []journal.ActionRecord{open("a", 3)}, "own", "c1", mirror.Lost(3))
	if err != nil || len(drafts) != 1 {
		t.Fatalf("got %q, %v", tell(drafts), err)
	}
	if ended := drafts[0].Payload.(journal.ActionEnded); ended.Outcome != journal.OutcomeCancelled || !strings.Contains(ended.Reason, "had lost") {
		t.Errorf("it ends as %+v", ended)
	}
}

func TestWhatAnActionLeavesAloneIsNotForgottenWithAJournal(t *testing.T) {
	mirrored := planned(open("a", 9))
	mirrored.Left = map[string]string{"osd.12": "Deployment rook-ceph/rook-ceph-osd-12 is bound to p9 now"}
	for journalID, options := range map[string][]mirror.AdoptOption{"own": {mirror.Lost(5)}, "other": nil} {
		store := memory.New()
		own := planned(open("a", 3))
		request := journal.Draft{Type: journal.TypeActionRequested, Subject: own.Subject, Action: own.ID, Actor: "operator", Payload: own.Request}
		drafts, err := mirror.Adopt(mirrorOf(journalID, mirrored), []journal.ActionRecord{own}, "own", "c1", options...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Append(t.Context(), append([]journal.Draft{request}, drafts...)...); err != nil {
			t.Fatal(err)
		}
		state := fsm.NewState()
		for event, err := range store.Read(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			state.Apply(event)
		}
		if got := state.Actions["a"].Left; got["osd.12"] == "" || len(state.Problems) > 0 {
			t.Errorf("from the mirror of journal %s: left alone are %v, with %q; problems %q", journalID, got, tell(drafts), state.Problems)
		}
	}
}
