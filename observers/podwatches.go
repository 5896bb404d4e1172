package observers

import (
	"context"
	"maps"
	"sync"
)

// maxPodWatches is up to how many nodes have a watch of their own. Beyond, one
// watch of all pods serves all nodes: by then most of the cluster's pods are of
// interest anyway, and one stream costs less than hundreds. Each open watch
// takes about 35 KiB and four goroutines here (measured), and a place in the API
// server's cache of watchers. What is kept is the same, the terminating pods.
const maxPodWatches = 50

// podWatches keeps one feed for each unknown node, or one for all.
type podWatches struct {
	cluster Cluster
	out     *outbox
	monitor *monitor
	gate    *gate
	wake    chan struct{}

	mu   sync.Mutex
	want map[string]string

	// Used by run only.
	feeds   map[string]podFeed
	running sync.WaitGroup
}

// podFeed is a running feed.
type podFeed struct {
	nodeUID string
	sink    *podSink
	stop    context.CancelFunc
}

// allNodes is the key of the feed for all nodes.
const allNodes = ""

func newPodWatches(cluster Cluster, out *outbox, m *monitor, g *gate) *podWatches {
	return &podWatches{
		cluster: cluster, out: out, monitor: m, gate: g,
		wake: make(chan struct{}, 1), feeds: make(map[string]podFeed),
	}
}

// set says on which nodes pods matter.
func (p *podWatches) set(nodes map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.want != nil && maps.Equal(p.want, nodes) {
		return
	}
	p.want = maps.Clone(nodes)
	if p.want == nil {
		p.want = map[string]string{}
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run starts and stops feeds until ctx ends, then waits for them.
func (p *podWatches) run(ctx context.Context) {
	defer p.running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		p.mu.Lock()
		want := p.want
		p.mu.Unlock()
		p.arrange(ctx, want)
	}
}

// arrange brings the feeds in line with the nodes wanted.
func (p *podWatches) arrange(ctx context.Context, want map[string]string) {
	wide := p.wide(len(want))
	for name, feed := range p.feeds {
		uid, wanted := want[name]
		if keep := wide && name == allNodes || !wide && wanted && uid == feed.nodeUID; !keep {
			p.stop(name)
		}
	}
	p.out.change(func() {
		if !wide {
			p.out.pods.narrow()
		}
		p.out.pods.watch(want)
	})
	if wide {
		p.start(ctx, allNodes, "")
		return
	}
	for name, uid := range want {
		p.start(ctx, name, uid)
	}
}

// wide reports whether to watch all pods at once. It changes back only at half
// the bound, so that nodes that come and go do not make it change all the time.
func (p *podWatches) wide(unknown int) bool {
	if _, already := p.feeds[allNodes]; already {
		return unknown > maxPodWatches/2
	}
	return unknown > maxPodWatches
}

func (p *podWatches) start(ctx context.Context, node, uid string) {
	if _, ok := p.feeds[node]; ok {
		return
	}
	name := "pods"
	if node != allNodes {
		name = "pods on " + node
	}
	ctx, stop := context.WithCancel(ctx)
	to := &podSink{out: p.out, node: node}
	feed := newFeed(name, p.cluster.PodsOn(node), to, p.gate, p.monitor)
	p.feeds[node] = podFeed{nodeUID: uid, sink: to, stop: stop}
	p.running.Go(func() { feed.run(ctx) })
}

func (p *podWatches) stop(node string) {
	feed := p.feeds[node]
	feed.stop()
	feed.sink.close()
	delete(p.feeds, node)
}
