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
	// minReadInterval is the shortest time between two reads. minNodesReadInterval is the shortest time between two
	// reads that changes of Nodes cause: a kubelet can change its own Node at any rate.
	minReadInterval      = 100 * time.Millisecond
	minNodesReadInterval = 5 * time.Second
	// While a request waits, EKCO reads again after rereadInterval even without a change, because it does not watch
	// everything that matters for a request.
	rereadInterval = 5 * time.Minute
	// firstRetry and lastRetry are the shortest and the longest pause after a failed read.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// survey reads the requests, and the objects on which decisions about them depend, until ctx ends.
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
		// Pause twice as long as the read took, to leave the API server time for other work.
		if !observers.Pause(ctx, max(minReadInterval, 2*time.Since(began))) {
			return
		}
		again = 0
		if !next.IsZero() {
			again = max(time.Until(next), minReadInterval)
		}
	}
}

// await waits for a change, or for the time again unless it is zero.
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

// look updates the facts, and returns when to read again even without a change; zero means never.
func (s *Source) look(ctx context.Context) (again time.Time, err error) {
	chosen, crowds, listed := s.chooseRequests()
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

// lookAround reads the objects around the requests, and returns when to do that again. Without changes it reads
// nothing.
func (s *Source) lookAround(ctx context.Context, chosen []csr.Request) (again time.Time, err error) {
	s.mu.Lock()
	moves, waiting := s.nodeChanges, len(s.pending) > 0
	s.mu.Unlock()
	now := time.Now()
	due := s.looked.Add(rereadInterval)
	if moves != s.movesSeen {
		due = observers.Earlier(s.movedAt.Add(minNodesReadInterval), due)
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
		due = now.Add(rereadInterval)
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

// chooseRequests returns the requests to judge, and the numbers of other requests by requester.
func (s *Source) chooseRequests() (requests []csr.Request, crowds map[string]int, listed bool) {
	in := s.judgedUIDs()
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
		// Record each increase of the number, but not each decrease.
		if more := max(roundedDown(further, all.spent[requester]), s.crowds[requester]); more > 0 && (len(grown) < maxCrowds || s.crowds[requester] > 0) {
			grown[requester] = more
		}
	}
	s.crowds = grown
	return all.requests, grown, true
}

// judgedUIDs returns the UIDs of the requests that EKCO judges now.
func (s *Source) judgedUIDs() map[string]bool {
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
