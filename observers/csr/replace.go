package csr

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

type compared = observers.Facts[told]

// replace says that exactly these are looked at now.
func (s *Source) replace(now map[string]told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.differ.Change(func(facts *compared) {
		facts.Looked = true
		endAll(facts, func(key string) string {
			if _, looked := now[key]; looked {
				return ""
			}
			return s.fate(key)
		})
		for key, v := range now {
			if facts.Now[key] != v {
				facts.Now[key] = v
				facts.Touch(key, time.Now())
			}
		}
	})
	// What was decided on after the choice is told of with the next look.
	maps.DeleteFunc(s.ended, func(key, _ string) bool { _, looked := now[key]; return !looked })
}

// fate says why a request is no longer looked at. It expects mu to be held.
func (s *Source) fate(key string) string {
	if decision := s.ended[key]; decision != "" {
		return decision
	}
	if _, pending := s.pending[key]; pending {
		return "newer ones of the same requester take its place"
	}
	return "deleted"
}

// endAll ends what the journal knows, for the reason given; "" is for what goes on.
func endAll(facts *compared, why func(key string) string) {
	for key := range facts.Now {
		if _, recorded := facts.Recorded[key]; !recorded && why(key) != "" {
			delete(facts.Now, key)
		}
	}
	for key := range facts.Recorded {
		if reason := why(key); reason != "" {
			if before, ok := facts.Now[key]; !ok || before.over == "" {
				facts.Now[key] = told{over: reason}
			}
			facts.Touch(key, time.Now())
		}
	}
}
