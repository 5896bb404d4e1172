package loadbalancer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// servers connects to the API servers of primaries, at the present and former addresses of each node.
type servers struct {
	running Running
	had     map[string]addresses
}

// addresses has the addresses that a node has, or had as a primary.
type addresses struct {
	uid string
	all []string
}

// maxAddresses is the maximum number of addresses to try for a node, because a Node's status can have any number.
const maxAddresses = 4

func newServers(running Running, known map[string]journal.LoadBalancerFacts, backends map[string][]string) *servers {
	s := &servers{running: running, had: map[string]addresses{}}
	for name, facts := range known {
		s.addressesToTry(name, facts, slices.Concat(backends[name], facts.Answers))
	}
	return s
}

// addressesToTry adds addresses of the node, and returns the addresses to try, newest last.
func (s *servers) addressesToTry(name string, facts journal.LoadBalancerFacts, more []string) []string {
	had := s.had[name]
	if had.uid != facts.NodeUID {
		had = addresses{uid: facts.NodeUID}
	}
	if facts.Primary && facts.Address != "" {
		more = append(slices.Clone(more), facts.Address)
	}
	for _, address := range more {
		if !slices.Contains(had.all, address) {
			had.all = append(had.all, address)
		}
	}
	// Keep the oldest address, because HAProxy may still use it.
	if n := len(had.all); n > maxAddresses {
		had.all = slices.Concat(had.all[:1], had.all[n-maxAddresses+1:])
	}
	s.had[name] = had
	return had.all
}

// serversTimeout limits all connections together. A machine that is off does not answer at all, and must not delay the
// facts of nodes.
const serversTimeout = 5 * time.Second

// server is an address of a node at which an API server answers.
type server struct{ node, address string }

// ask sets Asked and Answers in the facts. An answer from another node's API server does not count: a bridge has the
// same address on each host.
func (s *servers) ask(ctx context.Context, all map[string]journal.LoadBalancerFacts) {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	var mu sync.Mutex
	var asked parallel.Group
	own, unknown, nodes := map[server]bool{}, map[server]bool{}, maps.Clone(all)
	isNode := func(name string) bool { _, is := nodes[name]; return is }
	for name, facts := range all {
		for _, address := range s.addressesToTry(name, facts, nil) {
			facts.Asked = true
			asked.Go(func() {
				names, err := s.running.Serves(ctx, address)
				is, known := loadbalancer.Identify(names, name, isNode)
				mu.Lock()
				defer mu.Unlock()
				own[server{name, address}] = err == nil && is
				unknown[server{name, address}] = err == nil && !known
			})
		}
		all[name] = facts
	}
	asked.Wait().Raise()
	for name, facts := range all {
		for _, address := range slices.Sorted(slices.Values(s.had[name].all)) {
			if unknown[server{name, address}] {
				facts.Answers = append(facts.Answers, address)
			}
		}
		for _, address := range s.had[name].all {
			if own[server{name, address}] {
				facts.Answers = []string{address}
				break
			}
		}
		all[name] = facts
	}
	for name := range s.had {
		if _, is := all[name]; !is {
			delete(s.had, name)
		}
	}
}
