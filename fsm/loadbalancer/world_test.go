package loadbalancer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/journal"
)

const image = "haproxy:1"

// world is a journal of load balancers, whose HAProxies have the image that is wanted.
type world struct {
	*fsmtest.Journal
	// has is what manifest a node has; none means the wanted one.
	has map[string]string
	// started is when HAProxy was started on a node.
	started map[string]time.Time
	// writes is set if each action changes a file; status is the API servers' answer.
	writes bool
	status int
	// versions are the file versions of the manifests that actions wrote.
	versions map[string]string
}

func newWorld(t *testing.T) *world {
	w := &world{has: map[string]string{}, started: map[string]time.Time{}, versions: map[string]string{}}
	policy := fsm.DefaultPolicy().With(Machine, Policy{Enabled: true, Image: image, Version: "0", TCPVersion: "0-tcp", Layout: "l1"})
	w.Journal = fsmtest.New(t, policy, Capability(), ChangeCapability())
	w.Pass(time.Hour)
	return w
}

// set has the policy changed, which only a new EKCO can.
func (w *world) set(change func(*Policy)) {
	p := policyOf(w.P)
	change(&p)
	w.P = w.P.With(Machine, p)
	w.S.Changed(Machine)
}

func facts(name string, primary, ready bool) journal.LoadBalancerFacts {
	return journal.LoadBalancerFacts{NodeUID: "uid-" + name, Address: "10.0.0." + name[1:], Primary: primary, Ready: ready}
}

// see tells of a node: "p1" is a primary, "w1" none.
func (w *world) see(name string, ready bool) {
	w.T.Helper()
	seen := facts(name, name[0] == 'p', ready)
	seen.Started = w.started[name]
	w.Observe(Machine, journal.LoadBalancer(name), seen)
}

func (w *world) gone(name string) {
	w.T.Helper()
	w.Gone(Machine, journal.LoadBalancer(name), "the node was deleted")
}

// open is what is asked for once EKCO has decided: "update w1 10.0.0.1".
func (w *world) open() []string {
	w.T.Helper()
	w.Decide()
	var all []string
	for _, rec := range w.S.Actions {
		all = append(all, w.line(rec))
	}
	slices.Sort(all)
	return all
}

func (w *world) line(rec *journal.ActionRecord) string {
	w.T.Helper()
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil || input.NodeUID != "uid-"+rec.Subject.Name {
		w.T.Fatalf("%v: %+v", err, input)
	}
	verb, _, _ := strings.Cut(string(rec.Kind), "-")
	line := fmt.Sprintf("%s %s %s", verb, rec.Subject.Name, strings.Join(input.Primaries, " "))
	if rec.Cancelling != nil {
		line += ": " + rec.Cancelling.Reason
	}
	return line
}

// wants expects just these.
func (w *world) wants(want ...string) {
	w.T.Helper()
	if got := w.open(); !slices.Equal(got, want) {
		w.T.Fatalf("asked for are %q, want %q; refused: %+v", got, want, w.S.Refusals)
	}
}

// ends is the end of the action about a node.
func (w *world) ends(name string, outcome journal.Outcome) {
	w.T.Helper()
	rec := w.Open(journal.LoadBalancer(name))
	if rec == nil {
		w.T.Fatalf("nothing is done to %s", name)
	}
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil {
		w.T.Fatal(err)
	}
	on := journal.LoadBalancerOnNode{Backend: "b", Image: input.Image, Version: "0"}
	if has, set := w.has[name]; set && rec.Kind == journal.ActionUpdateLoadBalancer {
		on.Image = has
	}
	if rec.Kind == journal.ActionRestartLoadBalancer {
		w.versions[name] = input.Version
	}
	on.Version = cmp.Or(w.versions[name], on.Version)
	on.Config = w.writes
	w.PlayAll(rec, fsmtest.Played{Step: journal.StepWriteLoadBalancer + " " + name, Outputs: map[string]any{"result": on}},
		fsmtest.Played{Step: journal.StepReloadLoadBalancer, Outputs: journal.LoadBalancerRuns{Started: w.started[name]}},
		fsmtest.Played{Step: journal.StepReachLoadBalancer, Outputs: journal.LoadBalancerReached{Status: w.status}})
	w.End(rec, outcome)
}

// settles brings everything in step, and returns what that took.
func (w *world) settles() []string {
	w.T.Helper()
	var all []string
	for {
		open := w.open()
		if len(open) == 0 {
			return all
		}
		all = append(all, open...)
		for _, rec := range w.S.Actions {
			w.ends(rec.Subject.Name, journal.OutcomeDone)
		}
	}
}

// rollout brings everything in step, and returns the nodes that were changed at the same time.
func (w *world) rollout() (batches []string) {
	w.T.Helper()
	for {
		open := w.open()
		if len(open) == 0 {
			return batches
		}
		var names []string
		for _, rec := range w.S.Actions {
			names = append(names, rec.Subject.Name)
			w.ends(rec.Subject.Name, journal.OutcomeDone)
		}
		slices.Sort(names)
		batches = append(batches, strings.Join(names, " "))
	}
}

func (w *world) state(name string, want journal.State) {
	w.T.Helper()
	w.Decide()
	if got := w.S.Things[fsm.Key(journal.LoadBalancer(name))].State; got != want {
		w.T.Errorf("%s is %s, want %s", name, got, want)
	}
}
