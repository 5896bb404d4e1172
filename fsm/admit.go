package fsm

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Admitter is a [Machine] that answers persons' requests itself, for example requests about objects that EKCO never
// saw. For other machines, [AdmitExisting] answers requests.
type Admitter interface {
	Admit(s *State, p Policy, now time.Time, request Request) (Admission, error)
}

// Asked is a [Machine] that checks the input of a person's request.
type Asked interface {
	// Asked checks the request's input and adds it to asked. If the input is wrong, it returns a *[RefusedError], and
	// EKCO records the refusal. If no action is necessary, it returns a [NothingToDoError].
	Asked(t *Thing, w *World, request Request, asked *journal.ActionRequested) error
}

// Admit answers a person's request. It changes nothing.
//
// With a *[RefusedError], the Admission has the event that records the refusal, unless there is no thing for that
// event. Other errors are [ErrUnknown] and [ErrNotRefused]. [AdmitExisting] lets only rules with [Rule.Mandatory]
// refuse a person's request; other rules warn, see [CheckRule].
func Admit(s *State, p Policy, now time.Time, request Request) (Admission, error) {
	admission, err := admit(s, p, now, request)
	if err == nil && request.Refused {
		return Admission{}, ErrNotRefused
	}
	return admission, err
}

func admit(s *State, p Policy, now time.Time, request Request) (Admission, error) {
	if err := s.MayAsk(request.Kind); err != nil {
		return Admission{}, err
	}
	kind := s.Kind(request.Kind)
	if m := s.cache.machines[kind.Machine]; m != nil {
		if own, ok := m.Machine.(Admitter); ok {
			return own.Admit(s, p, now, request)
		}
	}
	return AdmitExisting(s, p, now, request)
}

// AdmitExisting answers a request about a thing that exists. An [Admitter] also calls it for such requests. A person
// must be allowed to request the kind of action; see [State.MayAsk].
func AdmitExisting(s *State, p Policy, now time.Time, request Request) (Admission, error) {
	kind := s.Kind(request.Kind)
	t := s.presentThing(kind.Machine, request.Name)
	if t == nil {
		return Admission{}, &UnknownError{Machine: kind.Machine, Name: request.Name, Near: Near(request.Name, s.namesPresent(kind.Machine))}
	}
	if request.UID != "" && request.UID != t.UID {
		return Refuse(t, request, RuleReplaced, fmt.Sprintf(
			"the name now belongs to another %s (uid %s) than the one you saw (uid %s); check it, then ask again", t.Machine(), t.UID, request.UID))
	}
	w := NewWorld(s, p, now)
	admitNew := func() (Admission, error) { return w.admitNew(t, kind, request) }
	switch open := s.OpenOf(Key(t.Subject), kind.Name); {
	case s.Journal.SafeMode():
		return Refuse(t, request, RuleSafeMode, SafeModeReason(s))
	case open != nil:
		return w.AdmitOpen(t, open, request, OpenAnswer{RetryReason: "requested again", Replace: admitNew})
	}
	return admitNew()
}

// presentThing returns the newest thing with this name that still exists, or nil.
func (s *State) presentThing(machine, name string) (present *Thing) {
	for _, key := range s.Named(machine, name) {
		if t := s.Things[key]; t.GoneSeq == 0 && !t.isFinished() {
			present = t
		}
	}
	return present
}

func (s *State) namesPresent(machine string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range s.ByName(machine) {
			if s.presentThing(machine, name) != nil && !yield(name) {
				return
			}
		}
	}
}

// admitNew admits an action about a thing that has no open action of this kind.
func (w *World) admitNew(t *Thing, kind *ActionKind, request Request) (Admission, error) {
	for i := range w.cache.rules {
		if rule := &w.cache.rules[i]; rule.Mandatory && kind.obeys(rule.Name) && rule.Refuses(w, t, kind) {
			return Refuse(t, request, rule.Name, rule.Reason(w, t, kind))
		}
	}
	asked, cause := t.machine.Request(t, kind, w)
	if err := w.checkInput(t, request, &asked); err != nil {
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return Refuse(t, request, refused.Rule, refused.Reason)
		}
		if nothing, ok := errors.AsType[NothingToDoError](err); ok {
			return Admission{AlreadyDone: true, Message: string(nothing)}, nil
		}
		return Admission{}, err
	}
	asked.Kind, asked.Manual, asked.Force, asked.DryRun = kind.Name, true, request.Force, request.DryRun || w.Policy.DryRun
	if asked.Reason = request.Reason; asked.Reason == "" {
		asked.Reason = "asked for by " + request.Actor
	}
	id := w.ActionID(kind, t.Subject)
	events := []journal.Draft{{
		Type: journal.TypeActionRequested, Subject: t.Subject, Action: id, Cause: cause, Actor: request.Actor, Payload: asked,
	}}
	return Admission{Action: id, Events: append(events, w.Warned(t.Subject, id, request.Actor, request.Warned)...)}, nil
}

// checkInput calls [Asked.Asked]. If the machine is not an [Asked], checkInput refuses a request with input.
func (w *World) checkInput(t *Thing, request Request, asked *journal.ActionRequested) error {
	machine, ok := t.machine.Machine.(Asked)
	switch {
	case ok:
		return machine.Asked(t, w, request, asked)
	case len(request.Input) > 0:
		return &RefusedError{Rule: RuleInput, Reason: fmt.Sprintf("a request for %s takes no input besides the name", request.Kind)}
	}
	return nil
}

// Refuse returns a *[RefusedError], and an Admission with the event that records the refusal.
func Refuse(t *Thing, request Request, rule, reason string) (Admission, error) {
	event := journal.Draft{
		Type: journal.TypeActionRefused, Subject: t.Subject, Cause: t.Newest(), Actor: request.Actor,
		Payload: journal.ActionRefused{Kind: request.Kind, Rule: rule, Reason: reason},
	}
	return Admission{Events: []journal.Draft{event}}, &RefusedError{Rule: rule, Reason: reason}
}
