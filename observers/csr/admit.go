package csr

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/csr"
)

// Limits of the requests that EKCO judges. A kubelet has one at a time, and creates another after 15 minutes without
// a decision.
const (
	// maxOfOne limits those of one requester at a time, maxAnHour those of it in an hour.
	maxOfOne  = 3
	maxAnHour = 10
	// maxAtOnce limits those of all requesters.
	maxAtOnce = 2000
	// crowdFrom is the number of further requests from which on they are recorded, for a requester that is below
	// maxAnHour.
	crowdFrom = 10
	// maxCrowds is for how many requesters that is recorded.
	maxCrowds = 20
)

// porter decides which of the pending requests EKCO judges.
type porter struct {
	// let are the admitted requests of each requester in the last hour.
	let map[string][]entry
}

// entry is an admitted request. It counts once, also if it could not be judged then and is chosen again.
type entry struct {
	uid string
	at  time.Time
}

// admitted is the porter's choice.
type admitted struct {
	requests []csr.Request
	// further is the number of other requests, by requester; spent are the requesters that have reached maxAnHour.
	further map[string]int
	spent   map[string]bool
}

// admit admits the newest requests of each requester. It ignores those older than its newest approved one, since the
// kubelet no longer waits for them. in are the admitted ones, by UID.
func (p *porter) admit(pending []csr.Request, approved map[string]time.Time, in map[string]bool, now time.Time) admitted {
	p.forget(now)
	of := make(map[string][]csr.Request)
	for _, request := range pending {
		requester := request.Asked.Requester
		if !request.CreatedAt.Before(approved[requester]) {
			of[requester] = append(of[requester], request)
		}
	}
	all := admitted{further: make(map[string]int), spent: make(map[string]bool)}
	for _, requester := range slices.Sorted(maps.Keys(of)) {
		requests := of[requester]
		chosen := p.choose(requester, requests, in, now, maxAtOnce-len(all.requests))
		all.requests = append(all.requests, chosen...)
		if further := len(requests) - len(chosen); further > 0 {
			all.further[requester], all.spent[requester] = further, len(p.let[requester]) == maxAnHour
		}
	}
	return all
}

func (p *porter) choose(requester string, requests []csr.Request, in map[string]bool, now time.Time, room int) []csr.Request {
	slices.SortFunc(requests, func(a, b csr.Request) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	var chosen []csr.Request
	for _, request := range requests {
		switch {
		case len(chosen) == min(room, maxOfOne):
			return chosen
		case in[request.UID] || p.hasLet(requester, request.UID):
		case len(p.let[requester]) < maxAnHour:
			p.let[requester] = append(p.let[requester], entry{request.UID, now})
		default:
			continue
		}
		chosen = append(chosen, request)
	}
	return chosen
}

func (p *porter) hasLet(requester, uid string) bool {
	return slices.ContainsFunc(p.let[requester], func(e entry) bool { return e.uid == uid })
}

func (p *porter) forget(now time.Time) {
	for requester, entries := range p.let {
		entries = slices.DeleteFunc(entries, func(e entry) bool { return now.Sub(e.at) >= time.Hour })
		if len(entries) == 0 {
			delete(p.let, requester)
		} else {
			p.let[requester] = entries
		}
	}
}

// atLeast rounds the number of further requests down to 1, 10, 100 or 1000; 0 means nothing to record.
func atLeast(further int, spent bool) int {
	if further < crowdFrom && !spent {
		return 0
	}
	rounded := 1
	for next := crowdFrom; further >= next; next *= 10 {
		rounded = next
	}
	return rounded
}
