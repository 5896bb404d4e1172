package mirror

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// actorOperator is the actor of what EKCO decides by itself.
const actorOperator = "operator"

// AdoptOption qualifies the own journal.
type AdoptOption func(*adoption)

// Lost says that the own journal lost events, at the earliest the one after seq,
// so that the mirror can know more of its actions than the journal itself.
func Lost(seq uint64) AdoptOption {
	return func(a *adoption) { a.lost, a.lastSeq = true, seq }
}

// EndedHere names actions that the own journal has ended. They are not adopted
// again from a journal that still has them open: who cancelled one meant it.
func EndedHere(ids ...string) AdoptOption {
	return func(a *adoption) { a.endedHere = append(a.endedHere, ids...) }
}

// UnderWay says that the own open actions have workers, which nothing may
// overtake: they get no plan and are not superseded, since each of their steps
// is proved before it is repeated. It is for [OnTakeover].
func UnderWay() AdoptOption { return func(a *adoption) { a.underWay = true } }

type adoption struct {
	content Content
	// knew is the last own event that the mirror's writer knew.
	knew      uint64
	endedHere []string
	own       []journal.ActionRecord
	lost      bool
	underWay  bool
	lastSeq   uint64
}

// Adopt says which events make the own journal go on with what the mirror
// holds, given the journal's open actions:
//
//   - a mirror of the own, intact journal teaches nothing;
//   - open actions that the own journal lacks are adopted;
//   - of an action that both have, the own record stays, except that a plan is
//     taken over by a record that has none, and what is left alone stays so; but
//     if the mirror's writer went on from the own record, its record is taken over,
//     with all that people said of it since;
//   - when another journal wrote the mirror last, own open actions that it says
//     to have ended are ended as superseded;
//   - when the own journal wrote the mirror and lost events since, its actions go
//     on, and end, as the mirror has them, as far as the mirror knows more.
//
// An own action of which the mirror says nothing stays open, and each of its
// steps is proved before it is repeated: the other EKCO may never have known of
// it. So nothing is superseded by the mirror of an EKCO that did not yet list
// what it ended.
//
// It returns an error that wraps [journal.ErrOtherCluster] when the mirror is
// of another cluster; UIDs that are empty are taken to match. It does not read
// or write anything.
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
		return append(a.adopted(), a.ended()...), nil
	case a.lost:
		return append(a.adopted(), a.ended()...), nil
	}
	return nil, nil
}

// adopted takes over those mirrored actions that are news.
func (a adoption) adopted() (drafts []journal.Draft) {
	for _, mirrored := range a.content.Actions {
		if mirrored.Ended != nil || slices.Contains(a.endedHere, mirrored.ID) || (a.lost && mirrored.LastSeq <= a.lastSeq) {
			continue
		}
		known := slices.IndexFunc(a.own, func(r journal.ActionRecord) bool { return r.ID == mirrored.ID })
		switch {
		case known < 0:
			drafts = append(drafts, a.adopt(mirrored))
		case a.underWay: // it is planned, and ends, by itself
		case a.own[known].Ended != nil:
		case a.lost && further(mirrored, a.own[known]):
			drafts = append(drafts, a.adopt(untrimmed(mirrored, a.own[known])))
		case !a.lost && a.own[known].LastSeq <= a.knew:
			adopted := a.adopt(mirrored)
			adopted.Payload = journal.ActionAdopted{Record: mirrored, JournalID: a.content.JournalID, Continues: true}
			drafts = append(drafts, adopted)
		case !a.lost && mirrored.Planned && !a.own[known].Planned:
			drafts = append(drafts, draft(mirrored, journal.TypeActionPlanned, journal.ActionPlanned{Plan: mirrored.Plan}))
			drafts = append(drafts, left(mirrored, a.own[known])...)
		default:
			drafts = append(drafts, left(mirrored, a.own[known])...)
		}
	}
	return drafts
}

// left keeps what the mirrored action found to be another's: it stays so, though
// nothing may show it any more.
func left(mirrored, own journal.ActionRecord) (drafts []journal.Draft) {
	for _, what := range slices.Sorted(maps.Keys(mirrored.Left)) {
		if own.Left[what] == "" {
			drafts = append(drafts, draft(mirrored, journal.TypeActionLeft, journal.ActionLeft{What: what, Reason: mirrored.Left[what]}))
		}
	}
	return drafts
}

func (a adoption) adopt(record journal.ActionRecord) journal.Draft {
	return draft(record, journal.TypeActionAdopted, journal.ActionAdopted{Record: record, JournalID: a.content.JournalID})
}

// ended ends the own actions that the mirror says to be over.
func (a adoption) ended() (drafts []journal.Draft) {
	for _, own := range a.own {
		ended, ok := a.endedThere(own)
		if a.underWay || own.Ended != nil || !ok || !settles(ended.Outcome, own) {
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

// endedThere finds an action that is over for the other journal.
func (a adoption) endedThere(own journal.ActionRecord) (EndedAction, bool) {
	open := slices.ContainsFunc(a.content.Actions, func(r journal.ActionRecord) bool { return r.ID == own.ID })
	i := slices.IndexFunc(a.content.Ended, func(e EndedAction) bool { return e.ID == own.ID && e.UID == own.Subject.UID })
	if i < 0 || open || slices.Contains(a.content.LeftOut, own.ID) {
		return EndedAction{}, false
	}
	return a.content.Ended[i], true
}

// settles reports whether an end elsewhere leaves nothing to do here. An action
// that stopped elsewhere before its point of no return, and went past it here
// since, goes on.
func settles(outcome journal.Outcome, own journal.ActionRecord) bool {
	switch outcome {
	case journal.OutcomeCancelled, journal.OutcomeAbandoned:
		return !own.PastNoReturn
	}
	return true
}

func draft(record journal.ActionRecord, kind journal.Type, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: kind, Subject: record.Subject, Action: record.ID, Actor: actorOperator, Payload: payload}
}
