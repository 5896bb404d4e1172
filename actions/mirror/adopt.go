package mirror

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// actorOperator is the actor of events that EKCO itself decides.
const actorOperator = "operator"

// AdoptOption describes this EKCO's own journal.
type AdoptOption func(*adoption)

// Lost tells Adopt that this EKCO's journal lost events after seq, so that the mirror may know more about its actions.
func Lost(seq uint64) AdoptOption {
	return func(a *adoption) { a.lost, a.lastSeq = true, seq }
}

// Kept tells Adopt that this EKCO's journal has lost or replaced its events after seq: its present events with higher
// numbers are not the ones that the mirror's writer knew. seq is 0 if it is unknown which events are lost.
func Kept(seq uint64) AdoptOption { return func(a *adoption) { a.knew = min(a.knew, seq) } }

// EndedHere names actions that have ended in this EKCO's journal, for example because a person cancelled them. Adopt
// does not adopt them, even if they are still open in the mirror.
func EndedHere(ids ...string) AdoptOption {
	return func(a *adoption) { a.endedHere = append(a.endedHere, ids...) }
}

// UnderWay tells Adopt that workers already run the open actions of this EKCO's journal. Adopt then neither plans nor
// supersedes these, because the workers verify each step before they repeat it. It is for [OnTakeover].
func UnderWay() AdoptOption { return func(a *adoption) { a.underWay = true } }

type adoption struct {
	content Content
	// knew is the number of the last event of this EKCO's journal that the mirror's writer knew.
	knew      uint64
	endedHere []string
	own       []journal.ActionRecord
	lost      bool
	underWay  bool
	lastSeq   uint64
}

// Adopt returns the events with which this EKCO's journal, with its open actions own, continues the work in the mirror:
//
//   - if this journal wrote the mirror and has lost no events, there is nothing to do;
//   - open actions that this journal lacks are adopted;
//   - if both have an action, this journal's record stays. It gets the mirror's plan if it has none, and the mirror's
//     list of objects that the action must not touch. But if the mirror's writer continued the action from this
//     journal's record, the writer's record replaces that record;
//   - if another journal wrote the mirror, open actions of this journal that ended there are superseded;
//   - if this journal wrote the mirror and then lost events, its actions continue or end as in the mirror. An action
//     with other events since the loss, and at least as much progress, stays as it is.
//
// An action of this journal that the mirror does not name stays open, because the other EKCO may never have known it;
// each of its steps is verified before it is repeated. The mirror of an old EKCO does not list ended actions, so no
// action is superseded by it.
//
// Adopt returns an error that wraps [journal.ErrOtherCluster] if the mirror belongs to another cluster. An empty UID
// matches every cluster. Adopt does not read or write anything.
func Adopt(content Content, own []journal.ActionRecord, ownJournalID, clusterUID string, options ...AdoptOption) ([]journal.Draft, error) {
	if content.ClusterUID != "" && clusterUID != "" && content.ClusterUID != clusterUID {
		return nil, fmt.Errorf("adopt open actions: the mirror belongs to cluster %s, this cluster is %s: %w; delete the mirror if it was copied here",
			content.ClusterUID, clusterUID, journal.ErrOtherCluster)
	}
	a := adoption{content: content, own: own, knew: content.Knew(ownJournalID)}
	for _, option := range options {
		option(&a)
	}
	switch {
	case content.JournalID != ownJournalID:
		a.lost = false
		return append(a.adoptDrafts(), a.endDrafts()...), nil
	case a.lost:
		return append(a.adoptDrafts(), a.endDrafts()...), nil
	}
	return nil, nil
}

// adoptDrafts returns the events for the mirrored open actions.
func (a adoption) adoptDrafts() (drafts []journal.Draft) {
	for _, mirrored := range a.content.Actions {
		if mirrored.Ended != nil || slices.Contains(a.endedHere, mirrored.ID) || (a.lost && mirrored.LastSeq <= a.lastSeq) {
			continue
		}
		known := slices.IndexFunc(a.own, func(r journal.ActionRecord) bool { return r.ID == mirrored.ID })
		switch {
		case known < 0:
			drafts = append(drafts, a.adoptDraft(mirrored))
		case a.underWay: // its worker plans and ends it
		case a.lost && (a.own[known].LastSeq <= a.knew || hasMoreProgress(mirrored, a.own[known]) ||
			a.own[known].LastSeq <= a.lastSeq && !hasMoreProgress(a.own[known], mirrored)):
			drafts = append(drafts, a.replaceDraft(restoreTrimmed(mirrored, a.own[known])))
		case a.own[known].LastSeq <= a.knew:
			drafts = append(drafts, a.replaceDraft(mirrored))
		case mirrored.Planned && !a.own[known].Planned:
			drafts = append(drafts, draft(mirrored, journal.TypeActionPlanned, journal.ActionPlanned{Plan: mirrored.Plan}))
			drafts = append(drafts, draftsOfLeftObjects(mirrored, a.own[known])...)
		default:
			drafts = append(drafts, draftsOfLeftObjects(mirrored, a.own[known])...)
		}
	}
	return drafts
}

// draftsOfLeftObjects returns the events that name objects which the mirrored action must not touch, because EKCO may
// not be able to find these objects again.
func draftsOfLeftObjects(mirrored, own journal.ActionRecord) (drafts []journal.Draft) {
	for _, what := range slices.Sorted(maps.Keys(mirrored.Left)) {
		if own.Left[what] == "" {
			drafts = append(drafts, draft(mirrored, journal.TypeActionLeft, journal.ActionLeft{What: what, Reason: mirrored.Left[what]}))
		}
	}
	return drafts
}

func (a adoption) adoptDraft(record journal.ActionRecord) journal.Draft {
	return draft(record, journal.TypeActionAdopted, journal.ActionAdopted{Record: record, JournalID: a.content.JournalID})
}

// replaceDraft returns the event that replaces this EKCO's record with the mirrored record, which continues it.
func (a adoption) replaceDraft(record journal.ActionRecord) journal.Draft {
	return draft(record, journal.TypeActionAdopted, journal.ActionAdopted{Record: record, JournalID: a.content.JournalID, Continues: true})
}

// endDrafts returns the events that end this EKCO's actions that have ended according to the mirror.
func (a adoption) endDrafts() (drafts []journal.Draft) {
	for _, own := range a.own {
		ended, ok := a.findEnd(own)
		if a.underWay || !ok || !endsOwn(ended.Outcome, own) {
			continue
		}
		payload := journal.ActionEnded{
			Outcome: journal.OutcomeSuperseded,
			Reason: fmt.Sprintf("journal %s took over, and the action ended there as %s at %s",
				a.content.JournalID, ended.Outcome, ended.At.Format(time.RFC3339)),
		}
		if a.lost {
			payload.Outcome = ended.Outcome
			payload.Reason = fmt.Sprintf("ended as %s at %s according to the mirror; the journal had lost that event",
				ended.Outcome, ended.At.Format(time.RFC3339))
		}
		drafts = append(drafts, draft(own, journal.TypeActionEnded, payload))
	}
	return drafts
}

// findEnd searches the mirror for the end of an action of this EKCO.
func (a adoption) findEnd(own journal.ActionRecord) (EndedAction, bool) {
	open := slices.ContainsFunc(a.content.Actions, func(r journal.ActionRecord) bool { return r.ID == own.ID })
	i := slices.IndexFunc(a.content.Ended, func(e EndedAction) bool { return e.ID == own.ID && e.UID == own.Subject.UID })
	if i < 0 || open || slices.Contains(a.content.LeftOut, own.ID) {
		return EndedAction{}, false
	}
	return a.content.Ended[i], true
}

// endsOwn reports whether an end in the other journal also ends this EKCO's action. If the action was stopped there
// before its point of no return, but has passed that point here, it continues.
func endsOwn(outcome journal.Outcome, own journal.ActionRecord) bool {
	switch outcome {
	case journal.OutcomeCancelled, journal.OutcomeAbandoned:
		return !own.PastNoReturn
	}
	return true
}

func draft(record journal.ActionRecord, kind journal.Type, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: kind, Subject: record.Subject, Action: record.ID, Actor: actorOperator, Payload: payload}
}
