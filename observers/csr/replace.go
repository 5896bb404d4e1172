package csr

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

type compared = observers.Facts[recordedRequest]

// replace sets the requests to judge now. It returns when to record more about them; zero means never.
func (s *Source) replace(now map[string]recordedRequest) (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowance.Forget(time.Now())
	s.differ.Change(func(facts *compared) {
		facts.Looked = true
		endAll(facts, func(key string) string {
			if _, looked := now[key]; looked {
				return ""
			}
			return s.endReason(key)
		})
		for key, v := range now {
			again = observers.Earlier(again, s.change(facts, key, v))
		}
	})
	// Requests that were decided after the choice are recorded with the next read.
	maps.DeleteFunc(s.ended, func(key, _ string) bool { _, looked := now[key]; return !looked })
	maps.DeleteFunc(s.withheld, func(key string, _ withheldFacts) bool { _, looked := now[key]; return !looked })
	return again
}

// withheldFacts has facts that are not recorded for now, and how often they have changed.
type withheldFacts struct {
	facts string
	times int
}

// change stores the present facts of a request. If facts of its requester were recorded too often, it withholds them,
// and returns when they may be recorded. The caller must hold mu.
func (s *Source) change(facts *compared, key string, now recordedRequest) (again time.Time) {
	before, known := facts.Now[key]
	if recorded := facts.Recorded[key]; !known && len(recorded) > 0 {
		before, known = recorded[0], true
	}
	kept := s.withheld[key]
	delete(s.withheld, key)
	switch {
	case !known || before.over != "":
	case before.facts == now.facts:
		now.unrecorded = before.unrecorded
		if kept.times > 0 {
			s.withheld[key] = withheldFacts{now.facts, kept.times}
		}
	case s.allowance.Take(now.requester, time.Now()):
		now.unrecorded = kept.times
		if kept.facts == now.facts {
			now.unrecorded--
		}
	default:
		if kept.facts != now.facts {
			kept = withheldFacts{now.facts, kept.times + 1}
		}
		s.withheld[key] = kept
		now, again = before, s.allowance.Next(now.requester)
	}
	if facts.Now[key] != now {
		facts.Now[key] = now
		facts.Touch(key, time.Now())
	}
	return again
}

// endReason returns the reason why EKCO no longer judges a request. The caller must hold mu.
func (s *Source) endReason(key string) string {
	if decision := s.ended[key]; decision != "" {
		return decision
	}
	if _, pending := s.pending[key]; pending {
		return "newer requests of the same requester replace it"
	}
	return "deleted"
}

// endAll ends the recorded requests for which why returns a reason. "" leaves a request open.
func endAll(facts *compared, why func(key string) string) {
	for key := range facts.Now {
		if _, recorded := facts.Recorded[key]; !recorded && why(key) != "" {
			delete(facts.Now, key)
		}
	}
	for key := range facts.Recorded {
		if reason := why(key); reason != "" {
			if before, ok := facts.Now[key]; !ok || before.over == "" {
				facts.Now[key] = recordedRequest{over: reason}
			}
			facts.Touch(key, time.Now())
		}
	}
}
