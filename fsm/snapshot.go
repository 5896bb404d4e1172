package fsm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ErrOtherFold is returned for a snapshot whose format this EKCO cannot read. The caller must replay the journal
// instead.
var ErrOtherFold = errors.New("snapshot has another format")

// NewState returns the state of an empty journal, for an EKCO with these capabilities.
func NewState(capabilities ...Capability) *State {
	return &State{
		cache:   newCache(capabilities),
		Things:  map[string]*Thing{},
		Actions: map[string]*journal.ActionRecord{},
		Pauses:  map[string]PauseState{},
		EndedAt: map[journal.ActionKind]time.Time{},
	}
}

// foldName returns the name of the state's format with the names of the machines. The names are included because a
// snapshot has no things of a machine that its writer did not have.
func (s *State) foldName() string {
	return strings.Join(append([]string{FoldName}, sortedKeys(s.cache.machines)...), " ")
}

// Snapshot returns the state as a snapshot that can be stored.
func (s *State) Snapshot() (journal.Snapshot, error) {
	body, err := json.Marshal(saved{State: s, Things: s.thingsByMachine()})
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot state at event %d: %w", s.Seq, err)
	}
	return journal.Snapshot{Seq: s.Seq, Fold: s.foldName(), Time: s.Time, State: body}, nil
}

// LoadState returns the state in the snapshot, or [ErrOtherFold] if this EKCO cannot read its format.
func LoadState(snapshot journal.Snapshot, capabilities ...Capability) (*State, error) {
	s := NewState(capabilities...)
	if name := s.foldName(); snapshot.Fold != name {
		return nil, fmt.Errorf("load snapshot of event %d: it is %q, this EKCO reads %q; replay the journal instead: %w",
			snapshot.Seq, snapshot.Fold, name, ErrOtherFold)
	}
	if err := s.read(snapshot.State); err != nil {
		return nil, fmt.Errorf("load snapshot of event %d: %w", snapshot.Seq, err)
	}
	if s.Seq != snapshot.Seq {
		return nil, fmt.Errorf("load snapshot of event %d: its state is of event %d", snapshot.Seq, s.Seq)
	}
	s.dropNil()
	return s, nil
}

// dropNil removes nil pointers and nil maps, which JSON can express and the fold does not expect.
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

// saved is the JSON form of a snapshot. Things are grouped by machine, because the machine determines the type of their
// data, and sorted by key. They are not part of the JSON of State, so that each is decoded only once.
type saved struct {
	State  *State              `json:"state"`
	Things map[string][]*Thing `json:"things,omitempty"`
}

func (s *State) thingsByMachine() map[string][]*Thing {
	of := map[string][]*Thing{}
	for _, key := range sortedKeys(s.Things) {
		t := s.Things[key]
		of[t.Machine()] = append(of[t.Machine()], t)
	}
	return of
}

// read decodes the JSON form of [saved]. It returns [ErrOtherFold] if this EKCO does not have the machine of some
// things.
func (s *State) read(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	err := readMembers(decoder, func(name string) error {
		switch name {
		case "state":
			return decoder.Decode(s)
		case "things":
			return readMembers(decoder, func(of string) error { return s.readThings(decoder, of) })
		}
		return fmt.Errorf("unknown member %q", name)
	})
	if err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more data after the state")
	}
	return nil
}

func (s *State) readThings(decoder *json.Decoder, machineName string) error {
	m := s.cache.machines[machineName]
	if m == nil {
		return fmt.Errorf("the machine %q is not known: %w", machineName, ErrOtherFold)
	}
	return readParts(decoder, '[', func() error { return s.readThing(decoder, m) })
}

// readMembers reads a JSON object or null, and calls read for the value of each member.
func readMembers(decoder *json.Decoder, read func(name string) error) error {
	return readParts(decoder, '{', func() error {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		return read(fmt.Sprint(name))
	})
}

// readParts reads a JSON object or list that begins with the delimiter, or null, and calls read for each part.
func readParts(decoder *json.Decoder, begins json.Delim, read func() error) error {
	switch opening, err := decoder.Token(); {
	case err != nil || opening == nil:
		return err
	case opening != begins:
		return fmt.Errorf("got %v, want %v", opening, begins)
	}
	for decoder.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

func (s *State) readThing(decoder *json.Decoder, m *machine) error {
	thing := &Thing{machine: m}
	thing.Data = m.New(thing)
	data, read := thing.Data, thing
	if err := decoder.Decode(&read); err != nil || read == nil {
		return err
	}
	thing.Data = data // the decoder sets nil if the JSON has null
	maps.DeleteFunc(thing.Last, func(_ journal.ActionKind, last *Ending) bool { return last == nil })
	maps.DeleteFunc(thing.Failed, func(_ journal.ActionKind, failed *FailedAttempts) bool { return failed == nil })
	maps.DeleteFunc(thing.Contests, func(_ string, c *Contest) bool { return c == nil })
	m.Loaded(thing)
	key := Key(thing.Subject)
	s.Things[key] = thing
	s.cache.index(key, thing)
	return nil
}
