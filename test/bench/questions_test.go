package bench

import (
	"context"
	"testing"
	"time"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/test/ceph"
)

// BenchmarkCephQuestions measures what the purge of one OSD asks of Ceph and does to
// it, in the same order: with a process for each question, as where a tools pod
// cannot do otherwise, and with what is asked together in one. Both by turns, so
// that both meet the same load.
func BenchmarkCephQuestions(b *testing.B) {
	c := ceph.Start(b, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 1, "node3": 1, "node4": 1}})
	c.StopHost("node4")
	osd := client.Ref{ID: c.Hosts()["node4"][0]}
	oneByOne := client.New(ceph.OneByOne{}, client.Options{Program: c.Program()})
	together := client.New(ceph.Runner{}, client.Options{Program: c.Program()})
	var apart, one []time.Duration
	logLoad(b)
	for b.Loop() {
		for range 5 {
			apart = append(apart, likePurge(b, oneByOne, osd))
			one = append(one, likePurge(b, together, osd))
			together.Close()
		}
	}
	logLoad(b)
	before, after := spreadOf(apart).median, spreadOf(one).median
	b.ReportMetric(milli(before), "one-by-one-ms")
	b.ReportMetric(milli(after), "together-ms")
	b.ReportMetric(float64(before)/float64(after), "times-as-fast")
}

// likePurge does what a purge does, but for the purge itself: osd.ID is marked down
// and out again and again, and nothing is removed.
func likePurge(b *testing.B, api client.API, osd client.Ref) time.Duration {
	b.Helper()
	ctx := b.Context()
	began := time.Now()
	tree := func() { _, err := api.Tree(ctx); must(b, err) }
	health := func() { _, err := api.Health(ctx); must(b, err) }
	safe := func() { _, err := api.SafeToDestroy(ctx, osd.ID); must(b, err) }
	change := func(do func(context.Context, ...int) error) func() {
		return func() { must(b, do(ctx, osd.ID)) }
	}
	for _, moment := range [][]func(){
		{tree}, {tree, health}, {safe}, {tree}, // the plan, and what a person is told
		{tree, health}, {safe}, // check
		{tree, health}, {tree}, {change(api.Out)}, {tree}, // out-osds
		{tree, health}, {safe}, {tree}, {tree}, {change(api.Down)}, {tree}, // purge-osd
		{health}, {tree}, {change(api.Out)}, {tree}, // remove-crush-host
	} {
		parallel.Run(moment...)
	}
	return time.Since(began)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
