package certificates

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const soon = 5 * 24 * time.Hour

func onPrimary(kind journal.ActionKind, points int, prepare func(*estate)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(bare *actionstest.World) actionstest.Stage {
		e := newEstate(bare, soon, "p1")
		if prepare != nil {
			prepare(e)
		}
		e.ask(kind, "p1")
		return actionstest.Stage{Kinds: e.kinds, Outcome: e.outcome}
	}}
}

func TestTheCrashMatrixOnPrimaries(t *testing.T) {
	actionstest.Scenes{
		"look":                         onPrimary(journal.ActionLookAtCertificates, 14, nil),
		"renew":                        onPrimary(journal.ActionRenewControlPlane, 14, nil),
		"a look that may not be noted": onPrimary(journal.ActionLookAtCertificates, 10, func(e *estate) { e.forbidden = true }),
	}.Run(t)
}

func TestWhatIsDueIsRenewedWhereItIsAndProvedFromElsewhere(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.ask(journal.ActionRenewControlPlane, "p1")
		began := time.Now()
		e.RunToEnd(e.Config(e.kinds(nil)))
		if got, want := e.outcome(), `p1: 2 fresh, 3 starts; seen [], noted false; 0 pods left`; got != want || e.LastLine() != "ended done" {
			t.Errorf("%s, %s", got, e.LastLine())
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		e.onRecord()
	})
}

func TestOneWhoLooksTellsWhatThereIsAndWritesDownThatHeDid(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.ask(journal.ActionLookAtCertificates, "p1")
		e.RunToEnd(e.Config(e.kinds(nil)))
		if got, want := e.outcome(), `p1: 0 fresh, 2 starts; seen ["uid-p1: 2 certificates, 0 problems"], noted true; 0 pods left`; got != want || e.LastLine() != "ended done" {
			t.Errorf("%s, %s", got, e.LastLine())
		}
		e.onRecord()
	})
}

// TestALookThatCannotBeWrittenDownEndsAllTheSame: there would be no other one.
func TestALookThatCannotBeWrittenDownEndsAllTheSame(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.unwritable = errors.New("the ConfigMap is immutable")
		e.ask(journal.ActionLookAtCertificates, "p1")
		e.RunToEnd(e.Config(e.kinds(nil)))
		if got := e.outcome(); e.LastLine() != "ended done ConfigMap rotate-certs is left alone: the ConfigMap is immutable" || !strings.Contains(got, "2 certificates") {
			t.Errorf("%s, %s", got, e.LastLine())
		}
	})
}

// TestAPrimaryIsRestartedOnlyWhileTheOthersAnswer, unless they are lost or its own certificate has expired.
func TestAPrimaryIsRestartedOnlyWhileTheOthersAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		others, silent, lost []string
		left                 time.Duration
		want                 bool
	}{
		"all answer":                         {others: []string{"p2", "p3"}, want: true},
		"it is the only one":                 {want: true},
		"one is silent":                      {others: []string{"p2", "p3"}, silent: []string{"p2"}},
		"all are silent":                     {others: []string{"p2", "p3"}, silent: []string{"p2", "p3"}},
		"a lost one is silent":               {others: []string{"p2", "p3"}, silent: []string{"p2"}, lost: []string{"p2"}, want: true},
		"a lost one answers":                 {others: []string{"p2"}, lost: []string{"p2"}, want: true},
		"all others are lost":                {others: []string{"p2", "p3"}, silent: []string{"p2", "p3"}, lost: []string{"p2", "p3"}},
		"one is silent, its own has expired": {others: []string{"p2"}, silent: []string{"p2"}, left: -48 * time.Hour, want: true},
		"its own does not answer, expired":   {others: []string{"p2"}, silent: []string{"p1", "p2"}, left: -48 * time.Hour, want: true},
		"its own does not answer, valid":     {others: []string{"p2"}, silent: []string{"p1", "p2"}},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				e := newEstate(bare, cmp.Or(test.left, soon), append(test.others, "p1")...)
				for _, name := range test.silent {
					e.silent[name] = true
				}
				for _, name := range test.lost {
					e.lost[name] = true
				}
				e.ask(journal.ActionRenewControlPlane, "p1")
				r := e.Start(e.Config(e.kinds(nil)))
				e.Pass(time.Hour)
				if done := e.LastLine() == "ended done"; done != test.want || (e.Made("p1") > 0) != test.want {
					t.Errorf("%s, %d pods", e.LastLine(), e.Made("p1"))
				}
				if !test.want {
					if held := e.Record().Holds["rotate p1"]; held.Preflight != AnotherAPIServer {
						t.Errorf("held by %+v", held)
					}
					e.mu.Lock()
					clear(e.silent)
					e.mu.Unlock()
				}
				r.End()
				if e.LastLine() != "ended done" || !strings.Contains(e.outcome(), "p1: 2 fresh") {
					t.Errorf("%s, %s", e.outcome(), e.LastLine())
				}
			})
		})
	}
}

// TestAPersonMayRestartAPrimaryThoughAnotherIsSilent: only past the silent ones that the reason named.
func TestAPersonMayRestartAPrimaryThoughAnotherIsSilent(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1", "p2", "p3")
		e.silent["p2"] = true
		check := func(forced ...string) actions.Verdict {
			record := journal.ActionRecord{ID: "a-1", Subject: journal.ControlPlaneCertificates("p1")}
			for _, key := range forced {
				record.Forced = append(record.Forced, journal.Forced{Preflight: AnotherAPIServer, Key: key})
			}
			for _, definition := range e.kinds(nil) {
				if preflight, is := definition.Preflights[AnotherAPIServer]; is {
					return preflight.Check(t.Context(), record)
				}
			}
			return actions.Verdict{}
		}
		shown := check()
		if shown.Kind != actions.VerdictHold || !strings.Contains(shown.Reason, `ekco retry --force a-1`) {
			t.Errorf("%+v", shown)
		}
		if forced := check(shown.Key); forced.Kind != actions.VerdictPass {
			t.Errorf("%+v", forced)
		}
		e.silent["p3"] = true
		if further := check(shown.Key); further.Kind != actions.VerdictHold {
			t.Errorf("%+v", further)
		}
	})
}

// TestWhileAnotherEKCORenewsOnAnotherPrimaryNothingIsRestarted: it has another journal, and would
// restart an API server as well.
func TestWhileAnotherEKCORenewsOnAnotherPrimaryNothingIsRestarted(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1", "p2", "p3")
		e.Set("p2", hosttasksim.Program{Run: 5 * time.Minute})
		another := hosttask.New(e.Cluster, e.Cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
		task := hosttask.Task{Name: RotateTask, Node: "p2", NodeUID: "uid-p2", Image: "replicated/ekco:v1", Limit: journal.Duration(rotateLimit)}
		if err := another.Make(e.T.Context(), task, hosttask.Owner{Action: "renew-p2-of-another", Step: "rotate p2"}); err != nil {
			t.Fatal(err)
		}
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(4 * time.Minute)
		held := e.Record().Holds["rotate p1"]
		if held.Preflight != AnotherAPIServer || held.Key != "elsewhere" || e.Made("p1") != 0 {
			t.Errorf("held by %+v, %d pods", held, e.Made("p1"))
		}
		r.End()
		if e.LastLine() != "ended done" || !strings.Contains(e.outcome(), "p1: 2 fresh") {
			t.Errorf("%s, %s", e.outcome(), e.LastLine())
		}
	})
}

func TestAComponentThatDoesNotComeBackHoldsTheActionWithItsLastWords(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		had := e.hosts["p1"].Loaded("kube-scheduler")
		broken := true
		e.hosts["p1"].Refuses = func(component string, loaded []string) string {
			e.mu.Lock()
			defer e.mu.Unlock()
			if broken && component == "kube-scheduler" && !slices.Equal(loaded, had) {
				return "connection refused"
			}
			return ""
		}
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(7 * time.Minute)
		held := e.Record().Holds["rotate p1"]
		if held.Preflight != ControlPlaneRests || !strings.Contains(held.Reason, "I am kube-scheduler and cannot go on") || !strings.Contains(held.Reason, "EKCO retries at ") {
			t.Errorf("held by %+v", held)
		}
		if !slices.Equal(e.hosts["p1"].Loaded("kube-scheduler"), had) {
			t.Error("it has not its old certificate")
		}
		made := e.Made("p1")
		e.Pass(12 * time.Hour)
		if tries := e.Made("p1") - made; tries < 3 || tries > 8 {
			t.Errorf("it was tried %d times in 12 hours", tries)
		}
		e.mu.Lock()
		broken = false
		e.mu.Unlock()
		e.Retry(r)
		r.End()
		if e.LastLine() != "ended done" || !strings.Contains(e.outcome(), "p1: 2 fresh") {
			t.Errorf("%s, %s", e.outcome(), e.LastLine())
		}
		e.onRecord()
	})
}

func TestAnExternalCAHoldsTheAction(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		key := e.hosts["p1"].Read("pki/ca.key")
		e.hosts["p1"].Remove("pki/ca.key")
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(time.Minute)
		if held := e.Record().Holds["rotate p1"]; held.Preflight != ControlPlaneRests || !strings.Contains(held.Reason, "ca.key: the CA is external") {
			t.Errorf("held by %+v", held)
		}
		e.hosts["p1"].Write("pki/ca.key", 0o600, key)
		e.Retry(r)
		r.End()
		if e.LastLine() != "ended done" {
			t.Errorf("it %s", e.LastLine())
		}
	})
}

// TestNothingIsRenewedByAWrongClock: with EKCO's clock far ahead, valid certificates look due.
func TestNothingIsRenewedByAWrongClock(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		set := func(wrong error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.clock = wrong
		}
		set(errors.New("the API server's clock is 2h behind EKCO's"))
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(10 * time.Minute)
		if held := e.Record().Holds["rotate p1"]; held.Preflight != ControlPlaneRests || held.Key != "clock" || e.Made("p1") != 0 {
			t.Errorf("held by %+v", held)
		}
		set(nil)
		e.Retry(r)
		r.End()
		if e.LastLine() != "ended done" {
			t.Errorf("it %s", e.LastLine())
		}
	})
}

// TestAStalledRenewalRenewsWhatIsDueLater: a certificate that cannot be renewed blocks no other.
func TestAStalledRenewalRenewsWhatIsDueLater(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, 33*24*time.Hour, "p1")
		foreign := &primarytest.Host{T: bare.T, Dir: t.TempDir(), NewKey: e.keys.New, Kind: certificates.ECDSAP256}
		foreign.Make(time.Now().Add(soon))
		e.hosts["p1"].Write("scheduler.conf", 0o600, foreign.Read("scheduler.conf"))
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(36 * time.Hour)
		if rec := e.Record(); rec.Stalled == nil || !strings.Contains(rec.Stalled.Reason, "did not sign it") {
			t.Errorf("it is %+v", rec.Stalled)
		}
		made := e.Made("p1")
		e.Pass(24 * time.Hour)
		if tries := e.Made("p1") - made; tries < 1 || tries > 4 {
			t.Errorf("it was tried %d times in a day", tries)
		}
		e.Pass(30 * time.Hour)
		if got := e.outcome(); !strings.HasPrefix(e.LastLine(), "ended partial ") || !strings.Contains(got, "p1: 1 fresh") {
			t.Errorf("%s, %s", got, e.LastLine())
		}
		r.End()
	})
}

func TestWhatIsServedMustBeTheNewOne(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.stale["p1"] = "the old one"
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(5 * time.Minute)
		if step := e.Record().Steps["rotate p1"]; step.Done() {
			t.Error("it is done though the old one is served")
		}
		e.serves("p1")
		r.End()
		if e.LastLine() != "ended done" {
			t.Errorf("it %s", e.LastLine())
		}
	})
}

// TestANodeLostDuringItsRenewalIsWorseOff until the renewal is proved there.
func TestANodeLostDuringItsRenewalIsWorseOff(t *testing.T) {
	for name, after := range map[string]time.Duration{"its pod starts": 500 * time.Millisecond, "the program runs": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				e := newEstate(bare, soon, "p1")
				e.ask(journal.ActionRenewControlPlane, "p1")
				r := e.Start(e.Config(e.kinds(nil)))
				e.Pass(after)
				e.Taint("p1", journal.TaintUnreachable)
				for range 2 { // it waits for its node then
					e.Pass(10 * time.Minute)
					if step := e.Record().Steps["rotate p1"]; !step.Worse || step.Failures != 1 {
						t.Errorf("%+v", step)
					}
				}
				e.Taint("p1", "")
				r.End()
				if e.LastLine() != "ended done" {
					t.Errorf("it %s", e.LastLine())
				}
			})
		})
	}
}

// serves has a primary serve its new certificates from now on.
func (e *estate) serves(primary string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.stale, primary)
}

// nodes answers for each node with the error.
type nodes struct {
	hosttask.Nodes
	err error
}

func (n nodes) Node(_ context.Context, name string) (kube.Node, error) {
	return kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Taints: []journal.Taint{{Key: journal.TaintNotReady}}}}, n.err
}

// TestANodeThatCannotBeReadIsNotLost, nor is one that is gone.
func TestANodeThatCannotBeReadIsNotLost(t *testing.T) {
	for err, lost := range map[error]bool{nil: true, kube.ErrUnavailable: false, kube.ErrNotFound: false} {
		p := Primaries{Tasks: hosttask.New(nil, nodes{hosttasksim.New("p1"), err}, "kurl", slog.New(slog.DiscardHandler))}
		rec := journal.ActionRecord{Subject: journal.ControlPlaneCertificates("p1"), Request: journal.ActionRequested{Input: journal.PrimaryInput{UID: "uid-p1"}}}
		if why := p.notReadyReason(t.Context(), rec); (why != "") != lost {
			t.Errorf("%v: it is lost because %q", err, why)
		}
	}
}

// TestAPodThatIsLostOnAReadyNodeIsAnOrdinaryFailure: its image may be missing.
func TestAPodThatIsLostOnAReadyNodeIsAnOrdinaryFailure(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.Set("p1", hosttasksim.Program{Dies: true, Run: time.Second})
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(10 * time.Minute)
		if step := e.Record().Steps["rotate p1"]; step.Worse || step.Failures == 0 {
			t.Errorf("%+v", step)
		}
		r.Halt()
	})
}

// TestARenewalThatIsNeverProvedLeavesItsPrimaryWorseOff: the program has replaced files, and their effect does not
// show.
func TestARenewalThatIsNeverProvedLeavesItsPrimaryWorseOff(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.stale["p1"] = "the old one"
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(time.Hour)
		if step := e.Record().Steps["rotate p1"]; !step.Worse || step.Failures == 0 {
			t.Errorf("%+v", step)
		}
		e.serves("p1")
		r.End()
		if e.LastLine() != "ended done" {
			t.Errorf("it %s", e.LastLine())
		}
	})
}

func TestARenewalIsProvedOnlyWhileItsNodeAnswers(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.stale["p1"] = "the old one"
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(time.Minute)
		e.Taint("p1", journal.TaintNotReady)
		e.serves("p1")
		e.Pass(time.Minute)
		if step := e.Record().Steps["rotate p1"]; !step.Open {
			t.Errorf("%+v", step)
		}
		e.Taint("p1", "")
		r.End()
		if made := e.Made("p1"); made != 1 || e.LastLine() != "ended done" {
			t.Errorf("%s, %d pods", e.LastLine(), made)
		}
	})
}

func TestAComponentMayTakeAsLongAsKubeadmLetsItStart(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		host := e.hosts["p1"]
		before := host.Starts("kube-scheduler")
		host.Refuses = func(component string, _ []string) string {
			if _, started := host.Newest(component); host.Starts(component) > before && time.Since(started) < 4*time.Minute {
				return "connection refused"
			}
			return ""
		}
		e.ask(journal.ActionRenewControlPlane, "p1")
		e.RunToEnd(e.Config(e.kinds(nil)))
		if got := e.outcome(); e.LastLine() != "ended done" || !strings.HasPrefix(got, "p1: 2 fresh, 3 starts") {
			t.Errorf("%s, %s", got, e.LastLine())
		}
	})
}

// TestTheLimitsOfARenewalFitIntoOneAnother: a rotation takes at most three times its patience.
func TestTheLimitsOfARenewalFitIntoOneAnother(t *testing.T) {
	task, step := plannedTask(t, journal.ActionRenewControlPlane)
	if limit := time.Duration(task.Limit); limit <= 3*max(RotatePatience, primary.MaxPatience) || time.Duration(step) < task.Longest()+proofTime {
		t.Errorf("its pod may take %s, its step %s", limit, time.Duration(step))
	}
}

// TestAStalledRenewalRunsTheProgramOfTheNewEKCO: some time after an update, nodes lack the old image.
func TestAStalledRenewalRunsTheProgramOfTheNewEKCO(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		e := newEstate(bare, soon, "p1")
		e.Set("p1", hosttasksim.Program{Runs: func(args []string) (any, error) {
			e.mu.Lock()
			old := strings.Contains(e.made, "replicated/ekco:v1")
			e.mu.Unlock()
			if old {
				return nil, errors.New("the image cannot be had")
			}
			return e.program("p1", args)
		}})
		e.ask(journal.ActionRenewControlPlane, "p1")
		r := e.Start(e.Config(e.kinds(nil)))
		e.Pass(36 * time.Hour)
		if e.Record().Stalled == nil {
			t.Fatalf("it is %s", e.LastLine())
		}
		r.Halt()
		e.image = "replicated/ekco:v2"
		r = e.Start(e.Config(e.kinds(nil)))
		e.Pass(12 * time.Hour)
		if got := e.outcome(); e.LastLine() != "ended done" || !strings.Contains(got, "p1: 2 fresh") {
			t.Errorf("%s, %s", got, e.LastLine())
		}
		r.End()
	})
}

// plannedTask returns the host task that an action of the kind plans, and the limit of its step.
func plannedTask(t *testing.T, kind journal.ActionKind) (hosttask.Task, journal.Duration) {
	t.Helper()
	for _, definition := range OfPrimaries(Primaries{Image: "replicated/ekco:v1"}) {
		if definition.Kind != kind {
			continue
		}
		plan, err := definition.Plan(t.Context(), journal.ActionRecord{Kind: kind, Subject: journal.ControlPlaneCertificates("p1"), Request: journal.ActionRequested{Input: journal.PrimaryInput{}}})
		var input struct{ Task hosttask.Task }
		if err == nil {
			err = json.Unmarshal(plan.Steps[0].Input, &input)
		}
		if err != nil {
			t.Fatal(err)
		}
		return input.Task, plan.Steps[0].Timeout
	}
	t.Fatalf("there is no %s", kind)
	return hosttask.Task{}, 0
}

func TestOnlyTheRenewalsPodMayChangeOwners(t *testing.T) {
	for kind, want := range map[journal.ActionKind][]string{journal.ActionRenewControlPlane: {"CHOWN"}, journal.ActionLookAtCertificates: nil} {
		if task, _ := plannedTask(t, kind); !slices.Equal(task.Capabilities, want) || task.Privileged {
			t.Errorf("%s: %+v", kind, task)
		}
	}
}

// TestOtherAPIServersAreAskedOnceTheDomainIsHeld: a renewal that ended just before may have left one down.
func TestOtherAPIServersAreAskedOnceTheDomainIsHeld(t *testing.T) {
	for _, definition := range OfPrimaries(Primaries{}) {
		if definition.Kind == journal.ActionRenewControlPlane && !slices.Contains(definition.AskedLast, AnotherAPIServer) {
			t.Errorf("asked last are %q", definition.AskedLast)
		}
	}
}

// heard is a step that keeps what it was given.
type heard struct {
	actions.Step
	task *hosttask.Task
}

func (h heard) keep(step actions.StepContext) error {
	var input struct{ Task hosttask.Task }
	err := step.Input(&input)
	*h.task = input.Task
	return err
}

// Do implements [actions.Step].
func (h heard) Do(_ context.Context, step actions.StepContext) (json.RawMessage, error) {
	return nil, h.keep(step)
}

// Prove implements [actions.Step].
func (h heard) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	return actions.Proof{}, h.keep(step)
}

// TestOutcomeWithoutAResultStaysAsItIs: for example, the node is gone.
func TestOutcomeWithoutAResultStaysAsItIs(t *testing.T) {
	for outputs, want := range map[string]string{
		`{"left":"node p1 is gone"}`:                      `{"left":"node p1 is gone"}`,
		`{"result":{"failed":["a","b"]}}`:                 `{"result":{"failed":["a","b"]},"missing":"a; b"}`,
		`{"result":{"rotated":["admin.conf"]},"left":""}`: `{"result":{"rotated":["admin.conf"]}}`,
	} {
		if got, err := withFailed([]byte(outputs)); err != nil || string(got) != want {
			t.Errorf("of %s it makes %s (%v)", outputs, got, err)
		}
	}
}

// TestAnOldPlansProgramHasTheTimeOfThisEKCO: also where it is judged.
func TestAnOldPlansProgramHasTheTimeOfThisEKCO(t *testing.T) {
	input, err := json.Marshal(map[string]any{"task": hosttask.Task{Name: RotateTask, Image: "replicated/ekco:v1", Limit: journal.Duration(time.Minute)}, "of": "renewal"})
	if err != nil {
		t.Fatal(err)
	}
	var got hosttask.Task
	step := currentImage{heard{task: &got}, Primaries{Image: "replicated/ekco:v2"}}
	at := actions.StepContext{
		Action:  journal.ActionRecord{Subject: journal.ControlPlaneCertificates("p1"), Request: journal.ActionRequested{Input: journal.PrimaryInput{}}},
		Planned: journal.PlannedStep{Input: input, Timeout: journal.Duration(time.Hour)},
	}
	for name, does := range map[string]func() error{
		"it is made":   func() error { _, err := step.Do(t.Context(), at); return err },
		"it is proved": func() error { _, err := step.Prove(t.Context(), at); return err },
	} {
		if err := does(); err != nil || got.Image != "replicated/ekco:v2" || time.Duration(got.Limit) != rotateLimit {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
		got = hosttask.Task{}
	}
	// The step of an earlier version would end before the program of this one.
	at.Planned.Timeout = journal.Duration(10 * time.Minute)
	if _, err := step.Do(t.Context(), at); err != nil || got.Image != "replicated/ekco:v2" || time.Duration(got.Limit) != time.Minute {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestOnlyAPrimaryThatServesNobodyIsRestartedWhileTheOthersAreSilent, whatever else has expired, such as admin.conf.
func TestOnlyAPrimaryThatServesNobodyIsRestartedWhileTheOthersAreSilent(t *testing.T) {
	for name, test := range map[string]struct {
		left, ends time.Duration
		silent     bool
		want       actions.VerdictKind
	}{
		"its API server answers, another certificate has expired": {soon, -time.Hour, false, actions.VerdictHold},
		"its API server answers with an expired certificate":      {-time.Hour, -time.Hour, false, actions.VerdictPass},
		"it is silent, another certificate has expired":           {soon, -time.Hour, true, actions.VerdictPass},
		"it is silent, none has expired":                          {soon, soon, true, actions.VerdictHold},
		"it is silent, and it is unknown when they expire":        {soon, 0, true, actions.VerdictHold},
	} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			e := newEstate(bare, test.left, "p1", "p2")
			e.silent["p1"], e.silent["p2"] = test.silent, true
			input := journal.PrimaryInput{}
			if test.ends != 0 {
				input.Ends = time.Now().Add(test.ends)
			}
			record := journal.ActionRecord{ID: "a-1", Subject: journal.ControlPlaneCertificates("p1"), Request: journal.ActionRequested{Input: input}}
			for _, definition := range e.kinds(nil) {
				if preflight, is := definition.Preflights[AnotherAPIServer]; is {
					if verdict := preflight.Check(t.Context(), record); verdict.Kind != test.want {
						t.Errorf("%s: %+v", name, verdict)
					}
				}
			}
		})
	}
}
