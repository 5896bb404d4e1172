package csr

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// rest is the least time between two looks.
	rest = 100 * time.Millisecond
	// lookAgain is when it is looked anew while a request waits although nobody said
	// that anything has changed: EKCO is not told of every address of a Node.
	lookAgain = 5 * time.Minute
	// firstRetry and lastRetry bound the time until the next look after one that failed.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// survey looks until ctx ends.
func (s *Source) survey(ctx context.Context) {
	retry := firstRetry
	for again := time.Duration(0); ; {
		if !s.await(ctx, again) {
			return
		}
		began := time.Now()
		waiting, err := s.look(ctx)
		switch {
		case err != nil:
			again, retry = retry, min(2*retry, lastRetry)
			continue
		case waiting:
			again = lookAgain
		default:
			again = 0
		}
		retry = firstRetry
		// In a large cluster a look takes its time, and the API server has other work.
		if !pause(ctx, max(rest, 2*time.Since(began))) {
			return
		}
	}
}

// await waits for news, or for that time if it is not zero.
func (s *Source) await(ctx context.Context, again time.Duration) bool {
	if again == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-s.changed:
			return true
		}
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.changed:
	case <-timer.C:
	}
	return true
}

func pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// look brings the facts up to date, and reports whether a request waits.
func (s *Source) look(ctx context.Context) (waiting bool, err error) {
	chosen, crowds, listed := s.chosen()
	if !listed {
		return false, nil
	}
	now, err := s.factsOf(ctx, chosen)
	if err != nil {
		return true, err
	}
	for requester, more := range crowds {
		subject := crowdSubject(requester)
		now[keyOf(subject)] = tellOf(subject, journal.CSRFacts{Asked: journal.CSR{Requester: requester}, AtLeast: more})
	}
	s.replace(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0, nil
}

// chosen returns which requests are looked at, and for how many others crowds stand.
func (s *Source) chosen() (requests []csr.Request, crowds map[string]int, listed bool) {
	in := s.in()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		return nil, nil, false
	}
	pending := make([]csr.Request, 0, len(s.pending))
	for _, request := range s.pending {
		pending = append(pending, request)
	}
	all := s.porter.admit(pending, s.approved, in, time.Now())
	grown := make(map[string]int)
	for requester, further := range all.further {
		// It is told that a crowd grows, not each time that it shrinks.
		if more := max(atLeast(further, all.spent[requester]), s.crowds[requester]); more > 0 && (len(grown) < maxCrowds || s.crowds[requester] > 0) {
			grown[requester] = more
		}
	}
	s.crowds = grown
	return all.requests, grown, true
}

// in returns the UIDs of the requests that are looked at now.
func (s *Source) in() map[string]bool {
	in := make(map[string]bool)
	s.differ.Change(func(facts *compared) {
		for key := range facts.Recorded {
			in[key] = true
		}
		for key, now := range facts.Now {
			if now.over == "" {
				in[key] = true
			}
		}
	})
	return in
}

func (s *Source) factsOf(ctx context.Context, requests []csr.Request) (map[string]told, error) {
	now := make(map[string]told, len(requests))
	if len(requests) == 0 {
		return now, nil
	}
	asked := make([]journal.CSR, 0, len(requests))
	for _, request := range requests {
		asked = append(asked, request.Asked)
	}
	around, err := s.options.Around(ctx, asked...)
	if err != nil {
		return nil, fmt.Errorf("look at what is around %d requests: %w", len(requests), err)
	}
	for i, request := range requests {
		now[request.UID] = tellOf(subjectOf(request), journal.CSRFacts{Asked: request.Asked, Around: around[i]})
	}
	return now, nil
}
