package ring

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
)

// TestHistoryShowsARolloutAsOneEntry: a primary joins; the daily looks before are no rollout. Then an image works on the
// first node alone.
func TestHistoryShowsARolloutAsOneEntry(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		pass(25 * time.Hour)
		f.joins("p2")
		f.inStep(2*time.Minute, "haproxy:1", 2, nil)
		f.stops(in)
		f.settings.Image = "haproxy:2"
		for _, name := range []string{"p1", "p2", "w2", "w3"} {
			f.haproxies.Break(name, loadbalancersim.Faults{BadImage: "haproxy:2"})
		}
		in = f.live(nil)
		pass(10 * time.Minute)
		for _, form := range []string{"summary", "tree"} {
			got := f.history(form)
			if n := len(regexp.MustCompile(`on \d+ nodes`).FindAllString(got, -1)); n != 4 {
				t.Errorf("the %s has %d rollouts:\n%s", form, n, got)
			}
			f.says("the "+form, got, "update the load balancer on 4 nodes: the primaries are 10.0.0.1 ", "all done",
				"update the load balancer on 5 nodes: the primaries are 10.0.0.1, 10.0.0.5 ", "all done\n",
				"├─ update loadbalancer w1 (", "├─ update loadbalancer w2 (", "├─ update loadbalancer w3 (", "├─ update loadbalancer p2 (", "└─ update loadbalancer p1 (",
				"so far", "restart the load balancer on 2 nodes: the image is haproxy:2 ", "stopped at w2, 1 of 5 done: stalled at write w2: failed 2 times: HAProxy (image haproxy:2) was not confirmed",
				"├─ restart loadbalancer w1 (", "└─ restart loadbalancer w2 (")
		}
		if summary := f.history("summary"); strings.Count(summary, "blocked by OneAtATime") > 0 {
			t.Errorf("that one node is restarted after the other is not part of the rollout:\n%s", summary)
		}
		f.stops(in)
	})
}

// TestHistoryShowsADryRunOfARolloutAsOneEntry: nothing is changed on any node.
func TestHistoryShowsADryRunOfARolloutAsOneEntry(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.policy.DryRun = true
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1", "w2")
		pass(10 * time.Minute)
		f.stops(in)
		for _, form := range []string{"summary", "tree"} {
			f.says("the "+form, f.history(form), "dry run: update the load balancer on 3 nodes: the primaries are 10.0.0.1 ", "nothing was changed\n", "└─ update loadbalancer ")
		}
	})
}
