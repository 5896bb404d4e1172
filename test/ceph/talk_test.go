package ceph_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// counting is a runner that counts processes.
type counting struct {
	ceph.Runner
	mu              sync.Mutex
	commands, talks int
}

func (r *counting) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	r.mu.Lock()
	r.commands++
	r.mu.Unlock()
	return r.Runner.Run(ctx, argv)
}

func (r *counting) Interact(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	r.mu.Lock()
	r.talks++
	r.mu.Unlock()
	return r.Runner.Interact(ctx, place, argv, stdin, stdout, stderr)
}

// count returns how many processes were run for questions.
func (r *counting) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.talks
}

func testOneProcessAnswersAll(t *testing.T, c *ceph.Cluster) {
	// Processes take long to start where much else is done.
	options := client.Options{Program: c.Program(), Timeout: await.HangTimeout, ConnectTimeout: await.HangTimeout}
	runner := &counting{}
	together, oneByOne := client.New(runner, options), client.New(ceph.OneByOne{}, options)
	t.Cleanup(together.Close)
	waitHealthy(t, c, oneByOne)

	wantAlike(t, together.Tree, oneByOne.Tree)
	wantAlike(t, together.Pools, oneByOne.Pools)
	wantAlike(t, together.Version, oneByOne.Version)
	// What is asked within some milliseconds counts as asked at once, which may need several tries.
	await.Until(t, await.HangTimeout, "one process answers all that is asked at once", func() (bool, string) {
		together.Close()
		before := runner.count()
		parallel.Run(
			func() { _, err := together.Health(t.Context()); notFailed(t, err) },
			func() { _, err := together.Tree(t.Context()); notFailed(t, err) },
			func() { _, err := together.Pools(t.Context()); notFailed(t, err) },
			func() { _, err := together.Version(t.Context()); notFailed(t, err) },
		)
		talks := runner.count() - before
		return talks == 1, fmt.Sprint(talks, " processes")
	})
	safety := func(api *client.Client) func(context.Context) (client.Safety, error) {
		return func(ctx context.Context) (client.Safety, error) { return api.SafeToDestroy(ctx, 9, unknown) }
	}
	wantAlike(t, together.PGs, oneByOne.PGs)
	wantAlike(t, safety(together), safety(oneByOne))

	// It answers what is so now, not what was when the process was started.
	for _, weight := range []float64{0.75, 0.5, 1} {
		must(t, together.Reweight(t.Context(), 10, weight))
		tree, err := together.Tree(t.Context())
		must(t, err)
		if osd, _ := tree.OSD(10); osd.Reweight < weight-0.001 || osd.Reweight > weight+0.001 {
			t.Errorf("osd.10 has weight %v, want %v", osd.Reweight, weight)
		}
	}
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if runner.commands != 3 {
		t.Errorf("%d commands were processes of their own, want the three changes alone", runner.commands)
	}
}

// notFailed is must for other goroutines than the test's.
func notFailed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func wantAlike[T any](t *testing.T, together, oneByOne func(context.Context) (T, error)) {
	t.Helper()
	want, wantErr := oneByOne(t.Context())
	got, err := together(t.Context())
	if fmt.Sprintf("%+v, %v", got, err) != fmt.Sprintf("%+v, %v", want, wantErr) || err != nil {
		t.Errorf("together %+v, %v\none by one %+v, %v", got, err, want, wantErr)
	}
}
