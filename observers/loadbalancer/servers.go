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

// servers connects to the API servers of primaries, at each node's present and former addresses.
type servers struct {
	running Running
	had     map[string]addresses
}

// addresses are those that a node has or had as a primary.
type addresses struct {
	uid string
	all []string
}

// maxAddresses is how many addresses of a node are tried. A Node's status can have any.
const maxAddresses = 4

func newServers(running Running, known map[string]journal.LoadBalancerFacts, backends map[string][]string) *servers {
	s := &servers{running: running, had: map[string]addresses{}}
	for name, facts := range known {
		s.of(name, facts, slices.Concat(backends[name], facts.Answers))
	}
	return s
}

// of adds the node's address and more of its addresses, and returns those to try, the newest last.
func (s *servers) of(name string, facts journal.LoadBalancerFacts, more []string) []string {
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
	// The oldest stays, since HAProxy may still have it.
	if n := len(had.all); n > maxAddresses {
		had.all = slices.Concat(had.all[:1], had.all[n-maxAddresses+1:])
	}
	s.had[name] = had
	return had.all
}

// serversTimeout limits all connections. An API server that is switched off does not answer at all, and must not
// delay the facts of nodes.
const serversTimeout = 5 * time.Second

// server is an address of a node at which an API server answers.
type server struct{ node, address string }

// ask sets Asked and Answers in the facts. The address of a bridge is the same on each host, so another node's API
// server may answer there: that does not count.
func (s *servers) ask(ctx context.Context, all map[string]journal.LoadBalancerFacts) {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	var mu sync.Mutex
	var asked parallel.Group
	own, unknown, nodes := map[server]bool{}, map[server]bool{}, maps.Clone(all)
	isNode := func(name string) bool { _, is := nodes[name]; return is }
	for name, facts := range all {
		for _, address := range s.of(name, facts, nil) {
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
