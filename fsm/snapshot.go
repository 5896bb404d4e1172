package fsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ErrOtherFold is returned for a snapshot that another fold made. The journal
// must be replayed instead.
var ErrOtherFold = errors.New("snapshot has another shape")

// NewState returns what is known of an empty journal.
func NewState() *State {
	return &State{
		Nodes:   map[string]*Node{},
		Actions: map[string]*journal.ActionRecord{},
		Pauses:  map[string]PauseState{},
		EndedAt: map[journal.ActionKind]time.Time{},
	}
}

// Snapshot returns the state as plain data. Its time is the time of the last
// event folded.
func (s *State) Snapshot() (journal.Snapshot, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot state at event %d: %w", s.Seq, err)
	}
	return journal.Snapshot{Seq: s.Seq, Fold: FoldName, Time: s.Time, State: body}, nil
}

// LoadState returns the state that the snapshot was taken of. It returns
// [ErrOtherFold] when the snapshot has another shape than this EKCO's.
func LoadState(snapshot journal.Snapshot) (*State, error) {
	if snapshot.Fold != FoldName {
		return nil, fmt.Errorf("load snapshot of event %d: it is %q, this EKCO reads %q; replay the journal instead: %w",
			snapshot.Seq, snapshot.Fold, FoldName, ErrOtherFold)
	}
	s := NewState()
	if err := json.Unmarshal(snapshot.State, s); err != nil {
		return nil, fmt.Errorf("load snapshot of event %d: %w", snapshot.Seq, err)
	}
	if s.Seq != snapshot.Seq {
		return nil, fmt.Errorf("load snapshot of event %d: its state is of event %d", snapshot.Seq, s.Seq)
	}
	s.dropNil()
	return s, nil
}

// dropNil makes sure that no map holds a nil pointer or is itself nil, which
// JSON can express and the fold does not expect.
func (s *State) dropNil() {
	if s.Nodes == nil {
		s.Nodes = map[string]*Node{}
	}
	if s.Actions == nil {
		s.Actions = map[string]*journal.ActionRecord{}
	}
	if s.Pauses == nil {
		s.Pauses = map[string]PauseState{}
	}
	if s.EndedAt == nil {
		s.EndedAt = map[journal.ActionKind]time.Time{}
	}
	for uid, n := range s.Nodes {
		if n == nil {
			delete(s.Nodes, uid)
			continue
		}
		for podUID, pod := range n.Pods {
			if pod == nil {
				delete(n.Pods, podUID)
			}
		}
	}
	for id, rec := range s.Actions {
		if rec == nil {
			delete(s.Actions, id)
		}
	}
}
