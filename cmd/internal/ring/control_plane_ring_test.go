package ring

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/actions"
	actionscertificates "github.com/replicatedhq/ekco/actions/certificates"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	certs "github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers"
	certificatesource "github.com/replicatedhq/ekco/observers/certificates"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

const (
	month = 30 * 24 * time.Hour
	// restarts is how long an API server takes to come back.
	restarts = 12 * time.Second
)

// plane is a ward of primaries, with the capability as the product has it.
type plane struct {
	*ward
	hosts map[string]*primarytest.Kubelet
	keys  certificatestest.Keys
	mu    sync.Mutex
	// broken has an API server not come back with new certificates.
	broken map[string]bool
	had    map[string][]string
	away   map[string]string
}

// inAPlane runs a test with primaries whose certificates expire in five days.
func inAPlane(t *testing.T, names []string, test func(*plane)) {
	inAHouse(t, func(h *house) {
		p := &plane{ward: newWard(h, names), hosts: map[string]*primarytest.Kubelet{}, broken: map[string]bool{}, had: map[string][]string{}, away: map[string]string{}}
		p.kind = ""
		for _, name := range names {
			host := &primarytest.Host{T: t, Dir: t.TempDir(), NewKey: p.keys.New, Kind: certs.ECDSAP256}
			host.Make(time.Now().Add(5 * 24 * time.Hour))
			p.hosts[name] = &primarytest.Kubelet{Host: host, Refuses: func(component string, loaded []string) string { return p.refuses(name, component, loaded) }}
			p.had[name] = slices.Clone(p.hosts[name].Loaded("kube-apiserver"))
			p.cluster.Set(name, hosttasksim.Program{Runs: func(args []string) (any, error) { return p.program(name, args) }})
		}
		pass(time.Minute) // what runs has run for a while
		test(p)
	})
}

// refuses says why a component does not answer.
func (p *plane) refuses(node, component string, loaded []string) string {
	if component != "kube-apiserver" {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken[node] && !slices.Equal(loaded, p.had[node]) {
		return "connection refused"
	}
	if _, started := p.hosts[node].Newest(component); time.Since(started) < restarts {
		return "starting"
	}
	return ""
}

func (p *plane) program(node string, args []string) (any, error) {
	kubelet := p.hosts[node]
	if args[1] == "read-certs" {
		return primary.Look(kubelet.Dir, month, time.Now(), fsmcertificates.IsDue), nil
	}
	rotation := primary.Rotation{
		Dir: kubelet.Dir, TTL: month, IsDue: fsmcertificates.IsDue, Now: time.Now, Kubelet: kubelet, NewKey: p.keys.New, Patience: actionscertificates.RotatePatience, Say: func(string) {},
	}
	result, err := rotation.Run(context.Background())
	if err := result.TaskError(err); err != nil {
		return nil, err
	}
	return rotation.Renewed(result), nil
}

// ListNodes implements [primaries.Nodes]: the address of a node is its name.
func (p *plane) ListNodes(context.Context) (nodes []kube.Node, err error) {
	if err := p.dead(); err != nil {
		return nil, err
	}
	for name := range p.hosts {
		facts := journal.NodeFacts{Role: journal.RolePrimary, InternalIP: name}
		p.mu.Lock()
		if taint := p.away[name]; taint != "" {
			facts.Taints = []journal.Taint{{Key: taint, Effect: "NoSchedule"}}
		}
		p.mu.Unlock()
		nodes = append(nodes, kube.Node{Name: name, UID: "uid-" + name, Facts: facts})
	}
	return nodes, nil
}

// taint gives a node a taint, or takes it off. EKCO's watch of Nodes sees it.
func (p *plane) taint(node, key string) {
	p.taintUnseen(node, key)
	var changes []func(*corev1.Node)
	if key == journal.TaintUnreachable {
		changes = append(changes, observerstest.Unreachable(time.Now()))
	}
	p.server.Put(observerstest.Node(node, "uid-"+node, changes...))
}

// taintUnseen is taint, and the watch sees nothing yet.
func (p *plane) taintUnseen(node, key string) {
	p.mu.Lock()
	p.away[node] = key
	p.mu.Unlock()
	p.cluster.Taint(node, key)
}

// planeServers ask the hosts.
type planeServers struct {
	*primaries.Store
	*plane
}

func (s planeServers) Answers(ctx context.Context, address string) error {
	if s.lost(address) {
		return errors.New("no route to host")
	}
	return s.hosts[address].Answers(ctx, primary.Static{Name: "kube-apiserver", Probe: "x"})
}

func (p *plane) lost(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away[node] == journal.TaintUnreachable
}

func (s planeServers) Serves(_ context.Context, address string, port int) (journal.Certificate, error) {
	item := map[int]string{6443: "pki/apiserver", 2379: "pki/etcd/server", 2380: "pki/etcd/peer"}[port]
	return certs.Facts(item, s.hosts[address].Leaf(item)), nil
}

func (s planeServers) Component(_ context.Context, name, node string) (primaries.Component, error) {
	uid, started := s.hosts[node].Newest(name)
	return primaries.Component{Hash: uid, Ready: true, Started: started}, nil
}

// begin starts a ring with host tasks of its own.
func (p *plane) begin() *incarnation {
	tasks, seen := hosttask.New(p.ward, p.ward, hosttasksim.Namespace, p.logger()), &observers.Nudge{}
	store := primaries.New(primaries.Options{
		Nodes: p, Objects: p.ward, Namespace: "kurl",
		Leaf: func(_ context.Context, address string) (*x509.Certificate, error) {
			node, _, _ := strings.Cut(address, ":")
			return p.hosts[node].Leaf("pki/apiserver"), nil
		},
		Answers: func(context.Context, string) error { return errors.New("nobody asks like this here") },
	})
	capability := Capability{
		Fsm: fsmcertificates.Capability(), Words: fsmcertificates.Words, Policy: fsmcertificates.Policy{Renew: true, Every: 24 * time.Hour, TTL: month},
		Actions: func(kube.API) []actions.Definition {
			of := planeServers{store, p}
			all := actionscertificates.OfPrimaries(actionscertificates.Primaries{
				Tasks: tasks, Servers: of, Attempts: store, Image: "replicated/ekco:v1",
				Look: []string{"host-task", "read-certs"}, Rotate: []string{"host-task", "rotate-certs"}, Seen: store.Seeing(seen.Look), Clock: func() error { return nil },
			})
			return append(all, actionscertificates.New(nil, nil, func() {}))
		},
		Sources: func(s *fsm.State) []observers.Source {
			return seen.Over(certificatesource.OfPrimaries(store, func() error { return nil }, "", fsmcertificates.Known(s)))
		},
	}
	p.list = func() Capabilities { return Capabilities{p.nodes(), capability} }
	p.also = nudging{seen}
	p.beside = tasks.SweepRegularly
	return p.estate.live(nil)
}

// end ends a ring once what runs on hosts has ended.
func (p *plane) end(in *incarnation) {
	p.t.Helper()
	pass(10 * time.Minute)
	if err := in.stop(); err != nil {
		p.t.Error(err)
	}
}

// fresh are the primaries whose certificates are new, by some of each sort. The kubeconfigs come last, because they take
// the longest to parse.
func (p *plane) fresh() (names []string) {
	for name, kubelet := range p.hosts {
		all := true
		for _, item := range []string{"pki/front-proxy-client", "pki/etcd/peer", "admin.conf", "scheduler.conf"} {
			all = all && kubelet.Whole(item) && time.Until(kubelet.Leaf(item).NotAfter) > 10*month
		}
		if all {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// answering counts the API servers that answer.
func (p *plane) answering() (n int) {
	for name, kubelet := range p.hosts {
		if !p.lost(name) && kubelet.Answers(p.t.Context(), primary.Static{Name: "kube-apiserver", Probe: "x"}) == nil {
			n++
		}
	}
	return n
}

// until waits for that, looking each second how many API servers answer, of which there must always
// be so many. It returns how long it took.
func (p *plane) until(what string, least int, is func() bool) time.Duration {
	p.t.Helper()
	began := time.Now()
	for !is() {
		if n := p.answering(); n < least {
			p.t.Errorf("%s after the begin %d API servers answer", time.Since(began), n)
		}
		if time.Since(began) > 20*time.Minute {
			p.t.Fatalf("%s does not come; the journal says:\n%s", what, p.history("table"))
		}
		pass(time.Second)
	}
	return time.Since(began)
}

func (p *plane) ran() (n int) {
	for name := range p.hosts {
		n += p.cluster.Made(name)
	}
	return n
}

func TestThreePrimariesAreRenewedOneAfterTheOther(t *testing.T) {
	inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
		in := p.begin()
		p.until("a first look", 3, func() bool { return p.ran() == 3 })
		took := p.until("the end", 2, func() bool { return len(p.fresh()) == 3 })
		t.Logf("renewed in %s after the first look", took)
		if took > 3*time.Minute {
			t.Errorf("it took %s", took)
		}
		pass(5 * time.Minute)
		if tasks := p.ran(); tasks != 9 { // a look, a renewal, and a look at what came of it
			t.Errorf("%d host tasks ran; the journal says:\n%s", tasks, p.history("table"))
		}
		p.says("the status", p.status(in, "wide"), "control-plane/p1  Valid", "control-plane/p3  Valid")
		before := p.ran()
		pass(2 * 24 * time.Hour)
		if each := (p.ran() - before) / 3; each != 2 {
			t.Errorf("at rest %d host tasks ran on each in two days", each)
		}
		p.clean()
		p.secretless()
		p.end(in)
	})
}

// secretless fails the test if there is anything of a key on record, or in the log.
func (p *plane) secretless() {
	p.t.Helper()
	for _, text := range []string{p.history("json"), p.log.String()} {
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, "LS0tLS1CRUdJTi") {
			p.t.Error("there is a key on record")
		}
	}
}

func TestAPrimaryThatIsAwayHoldsUpNoOther(t *testing.T) {
	inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
		p.taint("p1", journal.TaintUnreachable)
		p.taint("p2", journal.TaintUnschedulable) // which keeps nobody from it
		in := p.begin()
		p.until("the others", 1, func() bool { return slices.Equal(p.fresh(), []string{"p2", "p3"}) })
		pass(10 * time.Minute)
		p.taint("p1", "")
		took := p.until("the one that is back", 2, func() bool { return len(p.fresh()) == 3 })
		if took > 5*time.Minute {
			t.Errorf("after it was back it took %s", took)
		}
		p.end(in)
	})
}

// TestARenewalThatLeavesItemsOutIsPartial: the key of etcd's CA is elsewhere.
func TestARenewalThatLeavesItemsOutIsPartial(t *testing.T) {
	inAPlane(t, []string{"p1", "p2"}, func(p *plane) {
		p.hosts["p1"].Remove("pki/etcd/ca.key")
		in := p.begin()
		pass(5 * time.Minute)
		ended := map[string]journal.ActionEnded{}
		for _, event := range p.events(journal.Query{}) {
			if e, is := event.Decoded().Body.(*journal.ActionEnded); is && strings.HasPrefix(event.Action, "renew-") {
				ended[event.Subject.Name] = *e
			}
		}
		for name, want := range map[string]journal.Outcome{"control-plane/p1": journal.OutcomePartial, "control-plane/p2": journal.OutcomeDone} {
			if got := ended[name]; got.Outcome != want || strings.Contains(got.Reason, "etcd/ca.key") != (want == journal.OutcomePartial) {
				t.Errorf("the renewal of %s ended as %s: %s", name, got.Outcome, got.Reason)
			}
		}
		p.end(in)
	})
}

func TestAnItemThatCannotBeRenewedHoldsUpNoOtherPrimary(t *testing.T) {
	inAPlane(t, []string{"p1", "p2"}, func(p *plane) {
		p.hosts["p1"].Write("pki/etcd/healthcheck-client.crt", 0o600, []byte("nonsense"))
		in := p.begin()
		p.until("both", 1, func() bool { return len(p.fresh()) == 2 })
		p.end(in)
	})
}

// breaks has no API server come back with new certificates, or all of them.
func (p *plane) breaks(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.hosts {
		p.broken[name] = broken
	}
}

// restarted are the primaries whose API servers were restarted.
func (p *plane) restarted() (names []string) {
	for name, kubelet := range p.hosts {
		if kubelet.Starts("kube-apiserver") > 1 {
			names = append(names, name)
		}
	}
	return names
}

func TestAPrimaryThatDoesNotComeBackStopsTheOthers(t *testing.T) {
	inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
		p.breaks(true)
		in := p.begin()
		pass(75 * time.Minute) // a try takes 5 minutes, and there is another one soon after
		p.says("the status", p.status(in, "json"), "I am kube-apiserver and cannot go on")
		judged, stopped := status(p.t, in), 0
		api.Judge(&judged, p.capabilities().Vocabulary().Verb)
		for _, problem := range judged.Problems {
			if problem.NeedsYou && problem.Kind == api.ProblemHeld && strings.Contains(problem.Reason, fsmcertificates.RuleRollout) &&
				strings.Contains(problem.Reason, "ekco retry ") && strings.Contains(problem.Reason, "ekco cancel ") {
				stopped++
			}
		}
		if stopped != 2 {
			t.Errorf("%d renewals are stopped and need a person: %+v", stopped, judged.Problems)
		}
		restarted := p.restarted()
		if len(restarted) != 1 {
			t.Fatalf("the API servers of %q were restarted; the journal says:\n%s", restarted, p.history("table"))
		}
		if got := p.hosts[restarted[0]].Loaded("kube-apiserver"); !slices.Equal(got, p.had[restarted[0]]) {
			t.Errorf("the API server of %s has %q", restarted[0], got)
		}
		p.says("the status", p.status(in, "wide"), "control-plane/"+restarted[0]+"  Due") // it has its old ones again
		p.breaks(false)
		pass(5 * time.Hour)
		if len(p.fresh()) != 3 {
			t.Errorf("new are the certificates of %q; the journal says:\n%s", p.fresh(), p.history("table"))
		}
		p.end(in)
	})
	inAPlane(t, []string{"p1", "p2"}, func(p *plane) {
		p.breaks(true)
		in := p.begin()
		pass(2*24*time.Hour - time.Hour)
		if restarted := p.restarted(); len(restarted) != 1 {
			t.Errorf("the API servers of %q were restarted", restarted)
		}
		pass(2 * time.Hour)
		if restarted := p.restarted(); len(restarted) != 2 {
			t.Errorf("less than three days before their end the API servers of %q were restarted", restarted)
		}
		p.end(in)
	})
}

// expires gives each primary an expired certificate that EKCO cannot renew, since another CA has signed it.
func (p *plane) expires(item string) {
	old := &primarytest.Host{T: p.t, Dir: p.t.TempDir(), NewKey: p.keys.New, Kind: certs.ECDSAP256}
	old.Make(time.Now().Add(-24 * time.Hour))
	for _, h := range p.hosts {
		for _, ending := range []string{".crt", ".key"} {
			h.Write(item+ending, 0o600, old.Read(item+ending))
		}
	}
}

// TestExpiredItemThatCannotBeRenewedIsNotUrgent: the others have five days left.
func TestExpiredItemThatCannotBeRenewedIsNotUrgent(t *testing.T) {
	t.Run("a primary does not come back", func(t *testing.T) {
		inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
			p.expires("pki/etcd/healthcheck-client")
			p.breaks(true)
			in := p.begin()
			pass(90 * time.Minute)
			if restarted := p.restarted(); len(restarted) != 1 {
				t.Errorf("the API servers of %q were restarted; the journal says:\n%s", restarted, p.history("table"))
			}
			p.breaks(false)
			p.end(in)
		})
	})
	t.Run("its component has no valid manifest", func(t *testing.T) {
		inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
			for _, h := range p.hosts {
				h.Age("scheduler.conf", time.Now().Add(-24*time.Hour))
				h.Write("manifests/kube-scheduler.yaml", 0o600, []byte("kind: Job\n"))
			}
			p.breaks(true)
			in := p.begin()
			pass(90 * time.Minute)
			if restarted := p.restarted(); len(restarted) != 1 {
				t.Errorf("the API servers of %q were restarted; the journal says:\n%s", restarted, p.history("table"))
			}
			p.breaks(false)
			p.end(in)
		})
	})
	t.Run("a primary is lost soon after its renewal", func(t *testing.T) {
		inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
			p.expires("pki/etcd/healthcheck-client")
			p.taint("p3", journal.TaintUnreachable)
			in := p.begin()
			p.until("the others", 1, func() bool { return slices.Equal(p.fresh(), []string{"p1", "p2"}) })
			pass(2 * time.Minute) // their renewals end
			p.taint("p2", journal.TaintUnreachable)
			p.taint("p3", "")
			pass(time.Hour)
			if fresh := p.fresh(); !slices.Equal(fresh, []string{"p1", "p2"}) {
				t.Errorf("new are the certificates of %q; the journal says:\n%s", fresh, p.history("table"))
			}
			p.taint("p2", "")
			p.until("the last one", 2, func() bool { return len(p.fresh()) == 3 })
			p.end(in)
		})
	})
}

// TestPrimaryLostSoonAfterItsRenewalStopsOthers: p3 is away until p2, which is renewed by then, is lost.
func TestPrimaryLostSoonAfterItsRenewalStopsOthers(t *testing.T) {
	inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
		p.taint("p3", journal.TaintUnreachable)
		in := p.begin()
		p.until("the others", 1, func() bool { return slices.Equal(p.fresh(), []string{"p1", "p2"}) })
		pass(2 * time.Minute) // their renewals end
		p.taint("p2", journal.TaintUnreachable)
		p.taint("p3", "")
		pass(time.Hour)
		if fresh := p.fresh(); !slices.Equal(fresh, []string{"p1", "p2"}) {
			t.Errorf("new are the certificates of %q; the journal says:\n%s", fresh, p.history("table"))
		}
		p.says("the status", p.status(in, "json"), fsmcertificates.RuleRollout, "node p2 stopped being ready soon after its certificates were renewed")
		p.taint("p2", "")
		p.until("the last one", 2, func() bool { return len(p.fresh()) == 3 })
		p.end(in)
	})
}

// TestPrimaryLostDuringItsRenewalStopsOthers before anything observes that its node is lost.
func TestPrimaryLostDuringItsRenewalStopsOthers(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 6 * time.Second, 12 * time.Second, 18 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
				in := p.begin()
				p.until("a renewal", 3, func() bool { return len(p.begun()) > 0 })
				first := p.begun()[0]
				pass(after)
				p.taintUnseen(first, journal.TaintUnreachable)
				pass(20 * time.Minute)
				if begun := p.begun(); !slices.Equal(begun, []string{first}) {
					t.Errorf("renewals began on %q; the journal says:\n%s", begun, p.history("table"))
				}
				p.says("the status", p.status(in, "json"), fsmcertificates.RuleRollout, "node "+first)
				p.taintUnseen(first, "")
				p.until("the end", 2, func() bool { return len(p.fresh()) == 3 })
				p.end(in)
			})
		})
	}
}

// TestPodOfARenewalIsRemovedWhileAnotherPrimaryIsLost: the renewal itself is done.
func TestPodOfARenewalIsRemovedWhileAnotherPrimaryIsLost(t *testing.T) {
	inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
		in := p.begin()
		p.until("a renewal", 3, func() bool { return len(p.begun()) == 1 })
		p.cluster.Forbid("delete pods")
		p.until("a second renewal", 2, func() bool { return len(p.begun()) == 2 })
		done, lost := p.begun()[0], p.begun()[1]
		pass(6 * time.Second)
		p.taint(lost, journal.TaintUnreachable)
		pass(10 * time.Second)
		p.cluster.Allow("delete pods")
		pass(5 * time.Minute)
		if pods := p.cluster.Pods(); len(pods) > 0 {
			t.Errorf("left are %q; the journal says:\n%s", pods, p.history("table"))
		}
		p.says("the status", p.status(in, "wide"), "control-plane/"+done+"  Valid")
		p.taint(lost, "")
		p.end(in)
	})
}

// begun are the primaries whose certificates EKCO began to renew.
func (p *plane) begun() (names []string) {
	for _, event := range p.events(journal.Query{}) {
		if began, is := event.Decoded().Body.(*journal.StepStarted); is {
			if name, is := strings.CutPrefix(began.Step, journal.StepRenewControlPlane+" "); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestKillRestartsAtMostOnePrimaryInVain: no API server comes back with new certificates.
func TestKillRestartsAtMostOnePrimaryInVain(t *testing.T) {
	var moments []time.Duration
	for i := range rolloutPoints {
		moments = append(moments, 70*time.Second+time.Duration(i)*45*time.Second)
	}
	for _, moment := range crashpoints.ChooseOf(t, moments) {
		t.Run(moment.String(), func(t *testing.T) {
			inAPlane(t, []string{"p1", "p2", "p3"}, func(p *plane) {
				p.breaks(true)
				in := p.begin()
				pass(moment)
				in.life.kill()
				t.Logf("it ended: %v", <-in.ended)
				in = p.begin()
				pass(75 * time.Minute)
				restarted := p.restarted()
				if len(restarted) != 1 {
					t.Fatalf("the API servers of %q were restarted; the journal says:\n%s", restarted, p.history("table"))
				}
				if got := p.hosts[restarted[0]].Loaded("kube-apiserver"); !slices.Equal(got, p.had[restarted[0]]) || p.answering() != 3 {
					t.Errorf("the API server of %s has %q, and %d answer", restarted[0], got, p.answering())
				}
				p.says("the status", p.status(in, "json"), fsmcertificates.RuleRollout)
				p.end(in)
				pass(10 * time.Minute) // until no program is at work
			})
		})
	}
}

func TestKilledNowAndThenAllAreRenewedInTheEnd(t *testing.T) {
	inAPlane(t, []string{"p1", "p2"}, func(p *plane) {
		for _, after := range []time.Duration{70 * time.Second, 75 * time.Second, 80 * time.Second, 100 * time.Second, 65 * time.Second} {
			in := p.begin()
			pass(after)
			in.life.kill()
			t.Logf("it ended: %v", <-in.ended)
		}
		in := p.begin()
		p.until("the end", 1, func() bool { return len(p.fresh()) == 2 })
		pass(5 * time.Minute)
		p.clean()
		p.end(in)
	})
}
