package csr

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/csr"
)

// These limit the requests that EKCO judges. A kubelet normally has one request at a time, and creates another after 15
// minutes without a decision.
const (
	// maxOfOne limits the requests of one requester at a time; maxAnHour limits its requests in an hour.
	maxOfOne  = 3
	maxAnHour = 10
	// maxAtOnce limits the requests of all requesters at a time.
	maxAtOnce = 2000
	// minCrowd is how many further requests a requester must have before EKCO records their number. If the requester
	// has reached maxAnHour, EKCO always records it.
	minCrowd = 10
	// maxCrowds is the maximum number of requesters for which EKCO records the number.
	maxCrowds = 20
)

// admission decides which of the pending requests EKCO judges.
type admission struct {
	// admittedOf has the admitted requests of each requester in the last hour.
	admittedOf map[string][]entry
}

// entry is an admitted request. It counts once, even if it could not be judged at first and is chosen again.
type entry struct {
	uid string
	at  time.Time
}

// admissionResult is the result of [admission.admit].
type admissionResult struct {
	requests []csr.Request
	// further has the number of other requests, by requester. spent has the requesters that have reached maxAnHour.
	further map[string]int
	spent   map[string]bool
}

// admit chooses the newest requests of each requester. It ignores requests that are older than the requester's newest
// approved one, because the kubelet no longer waits for them. in has the UIDs of the requests that are admitted
// already.
func (p *admission) admit(pending []csr.Request, approved map[string]time.Time, in map[string]bool, now time.Time) admissionResult {
	p.forget(now)
	of := make(map[string][]csr.Request)
	for _, request := range pending {
		requester := request.Asked.Requester
		if !request.CreatedAt.Before(approved[requester]) {
			of[requester] = append(of[requester], request)
		}
	}
	all := admissionResult{further: make(map[string]int), spent: make(map[string]bool)}
	for _, requester := range slices.Sorted(maps.Keys(of)) {
		requests := of[requester]
		chosen := p.choose(requester, requests, in, now, maxAtOnce-len(all.requests))
		all.requests = append(all.requests, chosen...)
		if further := len(requests) - len(chosen); further > 0 {
			all.further[requester], all.spent[requester] = further, len(p.admittedOf[requester]) == maxAnHour
		}
	}
	return all
}

func (p *admission) choose(requester string, requests []csr.Request, in map[string]bool, now time.Time, room int) []csr.Request {
	slices.SortFunc(requests, func(a, b csr.Request) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	var chosen []csr.Request
	for _, request := range requests {
		switch {
		case len(chosen) == min(room, maxOfOne):
			return chosen
		case in[request.UID] || p.hasLet(requester, request.UID):
		case len(p.admittedOf[requester]) < maxAnHour:
			p.admittedOf[requester] = append(p.admittedOf[requester], entry{request.UID, now})
		default:
			continue
		}
		chosen = append(chosen, request)
	}
	return chosen
}

func (p *admission) hasLet(requester, uid string) bool {
	return slices.ContainsFunc(p.admittedOf[requester], func(e entry) bool { return e.uid == uid })
}

func (p *admission) forget(now time.Time) {
	for requester, entries := range p.admittedOf {
		entries = slices.DeleteFunc(entries, func(e entry) bool { return now.Sub(e.at) >= time.Hour })
		if len(entries) == 0 {
			delete(p.admittedOf, requester)
		} else {
			p.admittedOf[requester] = entries
		}
	}
}

// roundedDown rounds the number of further requests down to 1, 10, 100 or 1000; 0 means nothing to record.
func roundedDown(further int, spent bool) int {
	if further < minCrowd && !spent {
		return 0
	}
	rounded := 1
	for next := minCrowd; further >= next; next *= 10 {
		rounded = next
	}
	return rounded
}
