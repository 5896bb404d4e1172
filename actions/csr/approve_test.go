package csr_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	actioncsr "github.com/replicatedhq/ekco/actions/csr"
	"github.com/replicatedhq/ekco/fsm"
	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

// world is a world in which the kubelet of w1 has asked for its names, and EKCO is to
// approve that.
type world struct {
	*actionstest.World
	cluster *csrsim.Cluster
}

func newWorld(w *actionstest.World) *world {
	standing, err := fsm.TermsByKind(fsmcsr.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	w.Terms = standing
	c := csrsim.New()
	c.SetNode("w1", "w1", "10.0.0.1")
	c.SetNode("w2", "w2", "10.0.0.2")
	object := csrsim.Asks("csr-1", "w1", "w1", "10.0.0.1")
	c.Put(object)
	w.Request(journal.Subject{Kind: fsmcsr.Kind, Name: "csr-1", UID: "uid-csr-1", Node: "w1"}, journal.ActionRequested{
		Kind: actioncsr.Kind, Input: journal.CSRInput{Fingerprint: csr.Parse(object).Fingerprint},
	})
	return &world{w, c}
}

func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	actionstest.InBubble(t, func(w *actionstest.World) { test(w.T, newWorld(w)) })
}

func judge(asked journal.CSR, around journal.CSRAround) (key, reason string) {
	verdict := fsmcsr.Judge(asked, around)
	return verdict.Key, verdict.Reason
}

func (w *world) cfg() actions.Config {
	return w.Config([]actions.Definition{actioncsr.New(w.cluster, judge)})
}

// outcome is what the request has come to, and how often it was approved.
func (w *world) outcome() string {
	changed := 0
	for _, effect := range w.cluster.Effects() {
		if effect.Changed {
			changed++
		}
	}
	return fmt.Sprintf("%d conditions, approved %d times", len(w.cluster.Conditions("csr-1")), changed)
}

func (w *world) wantLeft(last string) {
	w.T.Helper()
	if w.LastLine() != last || len(w.cluster.Effects()) > 0 {
		w.T.Errorf("ended as %q after %v, want %q and no effect", w.LastLine(), w.cluster.Effects(), last)
	}
}

func TestTheKindsOfBothFloorsAreOne(t *testing.T) {
	if actioncsr.Kind != fsmcsr.Approve {
		t.Errorf("%s is carried out, and %s decided on", actioncsr.Kind, fsmcsr.Approve)
	}
}

// TestEKCOAsksForAnApprovalAnew: whatever is lost of one, its request still waits.
func TestEKCOAsksForAnApprovalAnew(t *testing.T) {
	if !actioncsr.New(csrsim.New(), judge).Expendable {
		t.Error("each approval is copied to the cluster, so that it is not lost")
	}
}

func TestAnApprovalSaysWhatWasChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 1", "started approve #1", "done approve #1", "ended done")
		conditions := w.cluster.Conditions("csr-1")
		if len(conditions) != 1 || conditions[0].Type != certificatesv1.CertificateApproved || conditions[0].Reason != "ekcoApprove" {
			t.Fatalf("conditions are %+v", conditions)
		}
		for _, want := range []string{"system:node:w1", "ECDSA 256 bits", "w1, 10.0.0.1", "Node w1 (uid uid-w1)", actionstest.ActionID} {
			if !strings.Contains(conditions[0].Message, want) {
				t.Errorf("does not say %q: %s", want, conditions[0].Message)
			}
		}
	})
}

func TestAnApprovalThatIsInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	actionstest.Scenes{"approve": {Points: 8, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare)
		w.cluster.BeforeEffect = func(string) { bare.MustBeStarted("approve") }
		return actionstest.Stage{
			Kinds: func(f *actionstest.Fuse) []actions.Definition {
				return []actions.Definition{actioncsr.New(mortal{w.cluster, f}, judge)}
			},
			Outcome: w.outcome,
		}
	}}}.Run(t)
}

// mortal is the cluster as the incarnation with that fuse reaches it.
type mortal struct {
	csr.API
	fuse *actionstest.Fuse
}

func (m mortal) Read(ctx context.Context, name string) (csr.Request, error) {
	if err := m.fuse.Alive(); err != nil {
		return csr.Request{}, err
	}
	return m.API.Read(ctx, name)
}

func (m mortal) Approve(ctx context.Context, request csr.Request, message string) error {
	return m.fuse.Around("approve", func() error { return m.API.Approve(ctx, request, message) })
}

func TestWhatIsReadLiveDecides(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		ends   string
	}{
		"deleted":           {func(w *world) { w.cluster.Remove("csr-1") }, "the request was deleted"},
		"replaced":          {func(w *world) { o := csrsim.Asks("csr-1", "w1", "w1"); o.UID = "another"; w.cluster.Put(o) }, "the request was deleted, and a new one has its name"},
		"denied":            {func(w *world) { w.cluster.Decide("csr-1", certificatesv1.CertificateDenied) }, "the request is denied"},
		"another content":   {func(w *world) { w.cluster.Put(csrsim.Asks("csr-1", "w1", "w1")) }, "the request differs from the one that EKCO checked"},
		"an address moved":  {func(w *world) { w.cluster.SetNode("w1", "w1") }, "it asks for 10.0.0.1, which is not among the addresses of Node w1 (w1)"},
		"an address shared": {func(w *world) { w.cluster.SetNode("w2", "w2", "10.0.0.1") }, "it asks for 10.0.0.1, which node w2 has too"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				test.change(w)
				w.RunToEnd(w.cfg())
				w.wantLeft("ended abandoned " + test.ends)
			})
		})
	}
}

// moving is a cluster in which something changes between the preflight and the step,
// which are the first and the second to look around.
type moving struct {
	*csrsim.Cluster
	move  func()
	looks int
}

func (m *moving) Around(ctx context.Context, since time.Time, asked ...journal.CSR) ([]journal.CSRAround, error) {
	if m.looks++; m.looks == 2 {
		m.move()
	}
	return m.Cluster.Around(ctx, since, asked...)
}

func TestEverythingIsJudgedOnceMoreRightBeforeTheApproval(t *testing.T) {
	for name, test := range map[string]struct {
		move func(w *world)
		ends string
	}{
		"its Node has lost an address": {func(w *world) { w.cluster.SetNode("w1", "w1") }, "it asks for 10.0.0.1, which is not among the addresses of Node w1 (w1)"},
		"another node has the address": {func(w *world) { w.cluster.SetNode("w2", "10.0.0.1") }, "it asks for 10.0.0.1, which node w2 has too"},
		"the cluster has the address":  {func(w *world) { w.cluster.SetCluster("10.0.0.1", "the endpoint") }, "it asks for 10.0.0.1, which is the endpoint"},
		"its Node is gone":             {func(w *world) { w.cluster.RemoveNode("w1") }, "there is no Node w1"},
		"nodes must not be listed":     {func(w *world) { w.cluster.Forbid(csrsim.ListNodes) }, "EKCO cannot check whose names it asks for: list nodes: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				api := &moving{Cluster: w.cluster, move: func() { test.move(w) }}
				w.RunToEnd(w.Config([]actions.Definition{actioncsr.New(api, judge)}))
				w.wantLeft("ended abandoned " + test.ends)
				said := ""
				for _, event := range w.Events() {
					if event.Type == journal.TypeStepFailed {
						said += string(event.Payload)
					}
				}
				if w.Count("failed approve #1") != 1 || !strings.Contains(said, test.ends) {
					t.Errorf("%q failed because %s", w.Story(), said)
				}
			})
		})
	}
}

// asking is a cluster that notes by how old a look it is to be judged, and takes its time
// about the first approval.
type asking struct {
	*csrsim.Cluster
	t      *testing.T
	judged time.Time
	slow   time.Duration
}

func (a *asking) Around(ctx context.Context, since time.Time, asked ...journal.CSR) ([]journal.CSRAround, error) {
	if age := time.Since(since); age > 2*time.Second {
		a.t.Errorf("judged by a look that is up to %s old", age)
	}
	a.judged = time.Now()
	return a.Cluster.Around(ctx, since, asked...)
}

func (a *asking) Approve(ctx context.Context, request csr.Request, message string) error {
	slow := a.slow
	a.slow = 0
	if err := sim.Wait(ctx, slow); err != nil {
		return err
	}
	if age := time.Since(a.judged); age > 3*time.Second {
		a.t.Errorf("approved by a judgement that is %s old", age)
	}
	return a.Cluster.Approve(ctx, request, message)
}

func TestAnApprovalThatIsLateIsJudgedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.RunToEnd(w.Config([]actions.Definition{actioncsr.New(&asking{Cluster: w.cluster, t: t, slow: 20 * time.Second}, judge)}))
		if w.LastLine() != "ended done" || w.outcome() != "1 conditions, approved 1 times" || w.Count("failed approve #1") != 1 {
			t.Errorf("%q, %s", w.Story(), w.outcome())
		}
	})
}

// TestAPlanThatDoesNotAskIsGuardedAllTheSame: it may be of another version of EKCO.
func TestAPlanThatDoesNotAskIsGuardedAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		definition := actioncsr.New(w.cluster, judge)
		plan := definition.Plan
		definition.Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
			planned, err := plan(ctx, record)
			planned.Steps[0].Preflights = nil
			return planned, err
		}
		w.cluster.SetNode("w1", "w1")
		w.RunToEnd(w.Config([]actions.Definition{definition}))
		w.WantStory("requested", "planned 1", "ended abandoned it asks for 10.0.0.1, which is not among the addresses of Node w1 (w1)")
	})
}

func TestWhatAnotherApprovedIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.Decide("csr-1", certificatesv1.CertificateApproved)
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended done" || len(w.cluster.Effects()) > 0 {
			t.Errorf("%q after %v", w.Story(), w.cluster.Effects())
		}
	})
}

// TestTwoEKCOsApproveOnce: between the read and the approval another one approves.
func TestTwoEKCOsApproveOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		done := false
		w.cluster.BeforeEffect = func(string) {
			if !done {
				done = true
				w.cluster.Decide("csr-1", certificatesv1.CertificateApproved)
			}
		}
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended done" || w.outcome() != "1 conditions, approved 0 times" {
			t.Errorf("%q, %s", w.Story(), w.outcome())
		}
	})
}

func TestAnAnswerThatWasLostIsProvedAndNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.LoseAnswer("approve csr-1")
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended done" || w.outcome() != "1 conditions, approved 1 times" || w.cluster.Count("approve csr-1") != 1 {
			t.Errorf("%q, %s", w.Story(), w.outcome())
		}
	})
}

func TestARequestThatGoesAwayAfterItsApprovalEndsTheAction(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.AfterEffect = func(string) { w.cluster.Remove("csr-1") }
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended abandoned the request was deleted" {
			t.Errorf("%q", w.Story())
		}
	})
}

func TestAnOutageHoldsAnApprovalAndItGoesOnAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.Outage(true)
		r := w.Start(w.cfg())
		w.Pass(time.Hour)
		w.WantStory("requested", "planned 1", `held "approve" by `+actioncsr.StillFits)
		w.cluster.Outage(false)
		if err := r.Wait(); err != nil || w.LastLine() != "ended done" {
			t.Errorf("%v, %q", err, w.Story())
		}
	})
}

func TestAMissingPermissionEndsAnApprovalAndIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.Forbid(csrsim.ListNodes)
		w.RunToEnd(w.cfg())
		w.wantLeft("ended abandoned EKCO cannot check whose names it asks for: list nodes: " + kube.ErrForbidden.Error())
	})
}

func TestARequestThatMustNotBeReadHoldsItsApproval(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.Forbid(csrsim.ListRequests)
		r := w.Start(w.cfg())
		w.Pass(time.Hour)
		holds := w.Record().Holds
		if hold := holds["approve"]; len(holds) != 1 || !strings.Contains(hold.Reason, kube.ErrForbidden.Error()) {
			t.Fatalf("held by %+v", holds)
		}
		w.cluster.Allow(csrsim.ListRequests)
		if err := r.Wait(); err != nil || w.LastLine() != "ended done" {
			t.Errorf("%v, %q", err, w.Story())
		}
	})
}

func TestADryRunApprovesNothing(t *testing.T) {
	t.Parallel()
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		request := w.Record().Request
		request.DryRun = true
		bare.Store = actionstest.NewWorld(t).Store
		w.Request(journal.Subject{Kind: fsmcsr.Kind, Name: "csr-1", UID: "uid-csr-1"}, request)
		w.RunToEnd(w.cfg())
		if !strings.HasPrefix(w.LastLine(), "ended dry-run") || len(w.cluster.Effects()) > 0 {
			t.Errorf("%q after %v", w.Story(), w.cluster.Effects())
		}
	})
}
