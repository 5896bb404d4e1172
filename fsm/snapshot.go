package fsm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ErrOtherFold is returned for a snapshot that another fold made. The journal
// must be replayed instead.
var ErrOtherFold = errors.New("snapshot has another shape")

// NewState returns what is known of an empty journal, to an EKCO that can do what the
// capabilities say.
func NewState(capabilities ...Capability) *State {
	return &State{
		cache:   newCache(capabilities),
		Things:  map[string]*Thing{},
		Actions: map[string]*journal.ActionRecord{},
		Pauses:  map[string]PauseState{},
		EndedAt: map[journal.ActionKind]time.Time{},
	}
}

// foldName names the shape of the state together with the machines: what the machines of
// another list would have made of the events is not in it.
func (s *State) foldName() string {
	return strings.Join(append([]string{FoldName}, sortedKeys(s.cache.machines)...), " ")
}

// Snapshot returns the state as plain data. Its time is the time of the last
// event folded.
func (s *State) Snapshot() (journal.Snapshot, error) {
	body, err := json.Marshal(saved{State: s, Things: s.byMachine()})
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot state at event %d: %w", s.Seq, err)
	}
	return journal.Snapshot{Seq: s.Seq, Fold: s.foldName(), Time: s.Time, State: body}, nil
}

// LoadState returns the state that the snapshot was taken of. It returns
// [ErrOtherFold] when the snapshot has another shape than this EKCO's.
func LoadState(snapshot journal.Snapshot, capabilities ...Capability) (*State, error) {
	s := NewState(capabilities...)
	if name := s.foldName(); snapshot.Fold != name {
		return nil, fmt.Errorf("load snapshot of event %d: it is %q, this EKCO reads %q; replay the journal instead: %w",
			snapshot.Seq, snapshot.Fold, name, ErrOtherFold)
	}
	if err := json.Unmarshal(snapshot.State, &loaded{State: s, Things: &storedThings{s: s}}); err != nil {
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
	if s.Actions == nil {
		s.Actions = map[string]*journal.ActionRecord{}
	}
	if s.Pauses == nil {
		s.Pauses = map[string]PauseState{}
	}
	if s.EndedAt == nil {
		s.EndedAt = map[journal.ActionKind]time.Time{}
	}
	for id, rec := range s.Actions {
		if rec == nil {
			delete(s.Actions, id)
		}
	}
}

// saved is a snapshot's JSON form. Its things are by machine, then by key: what a
// thing's data is follows from its machine.
type saved struct {
	*State
	Things map[string]map[string]*Thing `json:"things,omitempty"`
}

// loaded reads the same form.
type loaded struct {
	*State
	Things *storedThings `json:"things"`
}

// storedThings reads things into a state.
type storedThings struct{ s *State }

func (s *State) byMachine() map[string]map[string]*Thing {
	of := map[string]map[string]*Thing{}
	for key, t := range s.Things {
		name := t.Machine()
		if of[name] == nil {
			of[name] = map[string]*Thing{}
		}
		of[name][key] = t
	}
	return of
}

// UnmarshalJSON implements json.Unmarshaler. A snapshot with things of a machine that
// this EKCO does not have is another fold's.
func (t *storedThings) UnmarshalJSON(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	return members(decoder, func(name string) error {
		m := t.s.cache.machines[name]
		if m == nil {
			return fmt.Errorf("the machine %q is not known: %w", name, ErrOtherFold)
		}
		return members(decoder, func(key string) error { return t.load(decoder, m, key) })
	})
}

// members reads an object, or null, and calls read where each member's value is next.
func members(decoder *json.Decoder, read func(name string) error) error {
	switch opening, err := decoder.Token(); {
	case err != nil || opening == nil:
		return err
	case opening != json.Delim('{'):
		return fmt.Errorf("read things: got %v, want an object", opening)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := read(fmt.Sprint(name)); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

func (t *storedThings) load(decoder *json.Decoder, m *machine, key string) error {
	thing := &Thing{machine: m}
	thing.Data = m.New(thing)
	data, read := thing.Data, thing
	if err := decoder.Decode(&read); err != nil || read == nil {
		return err
	}
	thing.Data = data // a null would have taken it away
	maps.DeleteFunc(thing.Last, func(_ journal.ActionKind, last *Ending) bool { return last == nil })
	maps.DeleteFunc(thing.Contests, func(_ string, c *Contest) bool { return c == nil })
	if loader, ok := m.Machine.(Loader); ok {
		loader.Loaded(thing)
	}
	t.s.Things[key] = thing
	t.s.cache.index(key, thing)
	return nil
}
