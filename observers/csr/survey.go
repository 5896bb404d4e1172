package csr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

const (
	// rest is the shortest time between two reads, nodesRest between two reads because of Nodes: a kubelet can change
	// its own at any rate.
	rest      = 100 * time.Millisecond
	nodesRest = 5 * time.Second
	// lookAgain is when to read again while a request waits, without any change: EKCO does not watch every name of
	// the cluster.
	lookAgain = 5 * time.Minute
	// firstRetry and lastRetry limit the time until the next read after a failure.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// survey reads until ctx ends.
func (s *Source) survey(ctx context.Context) {
	retry := firstRetry
	for again := time.Duration(0); ; {
		if !s.await(ctx, again) {
			return
		}
		began := time.Now()
		next, err := s.look(ctx)
		if err != nil {
			again, retry = retry, min(2*retry, lastRetry)
			if !observers.Pause(ctx, firstRetry) {
				return
			}
			continue
		}
		retry = firstRetry
		// In a large cluster a read takes time, and the API server has other work.
		if !observers.Pause(ctx, max(rest, 2*time.Since(began))) {
			return
		}
		again = 0
		if !next.IsZero() {
			again = max(time.Until(next), rest)
		}
	}
}

// await waits for a change, or for the given time unless it is zero.
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

// look updates the facts, and returns when to read again without a change, zero for never.
func (s *Source) look(ctx context.Context) (again time.Time, err error) {
	chosen, crowds, listed := s.chosen()
	if !listed {
		return time.Time{}, nil
	}
	again, err = s.lookAround(ctx, chosen)
	if err != nil {
		return again, err
	}
	now := make(map[string]recordedRequest, len(chosen)+len(crowds))
	for _, request := range chosen {
		now[request.UID] = recordedOf(subjectOf(request), journal.CSRFacts{Asked: request.Asked, Around: s.around[request.UID]})
	}
	for requester, more := range crowds {
		subject := crowdSubject(requester)
		now[keyOf(subject)] = recordedOf(subject, journal.CSRFacts{Asked: journal.CSR{Requester: requester}, AtLeast: more})
	}
	return observers.Earlier(again, s.replace(now)), nil
}

// lookAround updates the cluster around the requests, and returns when to do that again. Without changes it reads
// nothing: few requests are chosen of a requester that creates many.
func (s *Source) lookAround(ctx context.Context, chosen []csr.Request) (again time.Time, err error) {
	s.mu.Lock()
	moves, waiting := s.moves, len(s.pending) > 0
	s.mu.Unlock()
	now := time.Now()
	due := s.looked.Add(lookAgain)
	if moves != s.movesSeen {
		due = observers.Earlier(s.movedAt.Add(nodesRest), due)
	}
	fresh := slices.ContainsFunc(chosen, func(request csr.Request) bool { _, known := s.around[request.UID]; return !known })
	if fresh || len(chosen) > 0 && !now.Before(due) {
		if err := s.lookAnew(ctx, chosen); err != nil {
			return time.Time{}, err
		}
		if moves != s.movesSeen {
			s.movedAt, s.movesSeen = now, moves
		}
		s.looked = now
		due = now.Add(lookAgain)
	}
	maps.DeleteFunc(s.around, func(uid string, _ journal.CSRAround) bool {
		return !slices.ContainsFunc(chosen, func(request csr.Request) bool { return request.UID == uid })
	})
	if !waiting {
		return time.Time{}, nil
	}
	return due, nil
}

func (s *Source) lookAnew(ctx context.Context, chosen []csr.Request) error {
	asked := make([]journal.CSR, 0, len(chosen))
	for _, request := range chosen {
		asked = append(asked, request.Asked)
	}
	around, err := s.options.Around(ctx, time.Now(), asked...)
	if err != nil {
		return fmt.Errorf("read the cluster around %d requests: %w", len(chosen), err)
	}
	for i, request := range chosen {
		s.around[request.UID] = around[i]
	}
	return nil
}

// chosen returns the requests to judge, and the numbers of others by requester.
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
		// Growth is recorded, but not each decrease.
		if more := max(atLeast(further, all.spent[requester]), s.crowds[requester]); more > 0 && (len(grown) < maxCrowds || s.crowds[requester] > 0) {
			grown[requester] = more
		}
	}
	s.crowds = grown
	return all.requests, grown, true
}

// in returns the UIDs of the requests that are judged now.
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
