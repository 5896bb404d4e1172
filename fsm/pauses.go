package fsm

import (
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// PauseKey returns the key of a subject's pause in [State.Pauses], for example "node/worker-2", or "" for the pause of
// everything. The key does not have the UID, so a pause also applies to a new thing with the same name.
func PauseKey(subject journal.Subject) string {
	if subject.Kind == journal.ClusterSubject.Kind {
		return ""
	}
	return strings.ToLower(subject.Kind) + "/" + subject.Name
}

// Pause returns the draft that pauses the thing which a person names, or everything if word is "". The word is a name
// such as "worker-2", or "node/worker-2" if things of several machines have the name. The pause ends after the given
// time, or never if the time is 0. It replaces a pause of the same thing. Pause returns an error for a name that the
// journal does not know, and [ErrAmbiguous] if several things have the name.
func Pause(s *State, now time.Time, word, reason string, after time.Duration, actor string) ([]journal.Draft, error) {
	if after < 0 {
		return nil, fmt.Errorf("pause for %s: the time must not be negative", after)
	}
	subject, err := s.toPause(word)
	if err != nil {
		return nil, err
	}
	payload := journal.PauseSet{Reason: reason}
	if after > 0 {
		payload.Until = now.Add(after).UTC()
	}
	return []journal.Draft{{Type: journal.TypePauseSet, Subject: subject, Actor: actor, Payload: payload}}, nil
}

// Resume returns the draft that ends a pause. word names the paused thing as in [Pause]. Resume returns [ErrNotPaused]
// if no pause matches, and [ErrAmbiguous] if several do.
func Resume(s *State, word, reason, actor string) ([]journal.Draft, error) {
	key, err := s.toResume(word)
	if err != nil {
		return nil, err
	}
	return []journal.Draft{{
		Type: journal.TypePauseCleared, Subject: pauseSubject(s, key), Cause: s.Pauses[key].Seq, Actor: actor,
		Payload: journal.PauseCleared{Reason: reason},
	}}, nil
}

// toPause returns the subject to pause that the word names.
func (s *State) toPause(word string) (journal.Subject, error) {
	if word == "" {
		return journal.ClusterSubject, nil
	}
	switch meant := s.thingsMeant(word); len(meant) {
	case 0:
		return journal.Subject{}, s.unknownError(word)
	case 1:
		return meant[0].Subject, nil
	default:
		var keys []string
		for _, t := range meant {
			keys = append(keys, PauseKey(t.Subject))
		}
		return journal.Subject{}, ambiguousError("pause", word, keys)
	}
}

// toResume returns the key of the pause that the word names. The paused thing need not exist any more.
func (s *State) toResume(word string) (string, error) {
	var keys []string
	for _, key := range sortedKeys(s.Pauses) {
		if s.matchesPause(word, key) {
			keys = append(keys, key)
		}
	}
	switch len(keys) {
	case 0:
		return "", s.notPausedError(word)
	case 1:
		return keys[0], nil
	}
	return "", ambiguousError("resume", word, keys)
}

// matchesPause reports whether a person's word names the pause with this key.
func (s *State) matchesPause(word, key string) bool {
	if word == "" || key == "" {
		return word == key
	}
	kind, name, _ := strings.Cut(key, "/")
	kindWord, nameWord, hasKind := strings.Cut(word, "/")
	if word == name || hasKind && nameWord == name && strings.EqualFold(kindWord, kind) {
		return true
	}
	machine := s.pausable(kindWord)
	return hasKind && machine != nil && key == PauseKey(machine.Nobody(nameWord))
}

func ambiguousError(command, word string, keys []string) error {
	var choices []string
	for _, key := range keys {
		choices = append(choices, fmt.Sprintf("\"ekco %s %s\"", command, key))
	}
	return fmt.Errorf("%s %s: %w; say which: %s", command, word, ErrAmbiguous, strings.Join(choices, " or "))
}

// notPausedError returns the error for a word that names no pause.
func (s *State) notPausedError(word string) error {
	what := "EKCO"
	if word != "" {
		meant := s.thingsMeant(word)
		if len(meant) == 0 {
			return s.unknownError(word)
		}
		if what = word; len(meant) == 1 {
			what = meant[0].Machine() + " " + meant[0].Name
		}
	}
	return fmt.Errorf("resume: %s is %w%s", what, ErrNotPaused, s.pausedNames())
}

func (s *State) pausedNames() string {
	if len(s.Pauses) == 0 {
		return ", and nothing else is"
	}
	text := "; paused:"
	for _, key := range sortedKeys(s.Pauses) {
		if key == "" {
			text += " everything"
		} else {
			text += " " + s.pauseWord(key)
		}
	}
	return text
}

// pauseWord returns the word with which a person can end the pause: the name, or the key if another pause has the same
// name.
func (s *State) pauseWord(key string) string {
	_, name, _ := strings.Cut(key, "/")
	for other := range s.Pauses {
		if other != key && s.matchesPause(name, other) {
			return key
		}
	}
	return name
}

// pauseSubject returns the subject of the pause with this key.
func pauseSubject(s *State, key string) journal.Subject {
	if key == "" {
		return journal.ClusterSubject
	}
	kind, name, _ := strings.Cut(key, "/")
	for _, machine := range s.pausables() {
		subject := machine.Nobody(name)
		if PauseKey(subject) != key {
			continue
		}
		if t := machine.Meant(s, name); t != nil {
			return t.Subject
		}
		return subject
	}
	return journal.Subject{Kind: kind, Name: name} // this EKCO does not have the machine
}

// thingsMeant returns the things that a person's word names.
func (s *State) thingsMeant(word string) (things []*Thing) {
	machines, name := s.readWord(word)
	for _, machine := range machines {
		if t := machine.Meant(s, name); t != nil {
			things = append(things, t)
		}
	}
	return things
}

// unknownError returns the error for a word that names nothing that can be paused.
func (s *State) unknownError(word string) error {
	if machines, name := s.readWord(word); len(machines) > 0 {
		return machines[0].Unknown(s, name)
	}
	return fmt.Errorf("%w: %q", ErrUnknown, word)
}

// readWord returns the machines to which the thing that a person names may belong, and the name without the machine.
func (s *State) readWord(word string) (machines []Pausable, name string) {
	if kindWord, nameWord, hasKind := strings.Cut(word, "/"); hasKind {
		if machine := s.pausable(kindWord); machine != nil {
			return []Pausable{machine}, nameWord
		}
	}
	return s.pausables(), word
}

// pausables returns the machines whose things a person can pause.
func (s *State) pausables() (machines []Pausable) {
	for _, capability := range s.cache.capabilities {
		if machine, ok := capability.Machine.(Pausable); ok {
			machines = append(machines, machine)
		}
	}
	return machines
}

// pausable returns the machine that has this name, or whose things have this kind; or nil.
func (s *State) pausable(called string) Pausable {
	for _, capability := range s.cache.capabilities {
		machine, ok := capability.Machine.(Pausable)
		if ok && (strings.EqualFold(called, capability.Machine.Name()) || strings.EqualFold(called, machine.Nobody("").Kind)) {
			return machine
		}
	}
	return nil
}
