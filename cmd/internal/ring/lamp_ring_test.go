package ring

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// house is a world with lamps: its nodes and lamps are what a stand-in for an API
// server has, and its journal is a file.
type house struct {
	*world
	server  *observerstest.World
	dir     string
	metrics *api.Metrics

	mu    sync.Mutex
	porch lampFacts
	// also, when set, is shown the Nodes.
	also observers.Sink
	// effects are what was done to lamps, by whoever lives.
	effects []string
	life    *life
}

func inAHouse(t *testing.T, test func(h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{world: newWorld(t), server: observerstest.NewWorld(), dir: t.TempDir(), porch: lampFacts{Lit: true, Bulb: "E14"}}
		h.openJournal("journal.db")
		defer h.closeJournal()
		h.list = func() Capabilities {
			return Capabilities{h.nodes(), lamps(h, lampPolicy{Nodes: 2, After: time.Minute})}
		}
		h.starts = h.observing()
		h.server.Put(observerstest.Node("a", "uid-a"))
		h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27"})
		test(h)
	})
}

// observing starts the product's observers.
func (h *house) observing() StartObservers {
	return func(ctx context.Context, sources []observers.Source, recorder Recorder) Observers {
		return observers.Start(ctx, observers.Options{
			Sources: sources, Probe: h.server.Probe, Recorder: recorder, Log: h.logger(), Now: h.now,
		})
	}
}

// openJournal goes on with a journal of that name.
func (h *house) openJournal(name string) {
	h.t.Helper()
	store, err := bolt.Open(h.t.Context(), filepath.Join(h.dir, name), bolt.Options{Now: h.now})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = store
}

func (h *house) closeJournal() {
	if err := h.store.(*bolt.Store).Close(); err != nil {
		h.t.Error(err)
	}
}

// nodes is the product's capability but for its actions, which nothing asks for here.
func (h *house) nodes() Capability {
	of := h.world.nodes()
	of.Sources = func(s *fsm.State) []observers.Source {
		var known []kube.Node
		for _, node := range fsmnode.Known(s) {
			if node.Present() {
				known = append(known, kube.Node{Name: node.Name, UID: node.UID, Facts: node.Facts})
			}
		}
		return []observers.Source{nodes.New(nodes.Options{Nodes: h.server.Nodes(), Known: known, Also: h.also})}
	}
	return of
}

// live starts a ring that changes lamps while it lives.
func (h *house) live(arm func(*incarnation)) *incarnation {
	h.metrics = api.NewMetrics()
	h.world.metrics = h.metrics
	return h.start(func(in *incarnation) {
		h.mu.Lock()
		h.life = in.life
		h.mu.Unlock()
		if arm != nil {
			arm(in)
		}
	})
}

func (h *house) put(name string, lamp lampFacts) {
	yes := map[bool]string{true: "yes", false: "no"}
	h.server.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(lamp.UID)},
		Data: map[string]string{
			"burns": yes[lamp.Lit], "worn": yes[lamp.Worn], "daylight": yes[lamp.Daylight], "bulb": lamp.Bulb,
		},
	})
}

func (h *house) Lamps() kube.Source { return h.server.ConfigMaps() }

func (h *house) Porch(context.Context) (map[string]lampFacts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return map[string]lampFacts{"porch": h.porch}, nil
}

func (h *house) Lamp(ctx context.Context, name string) (lampFacts, error) {
	if name == "porch" {
		all, err := h.Porch(ctx)
		return all[name], err
	}
	object, err := h.server.Get(ctx, "configmaps", name)
	if err != nil {
		return lampFacts{}, err
	}
	_, lamp, _ := readLamp(object)
	return lamp, nil
}

func (h *house) Turn(ctx context.Context, name, effect string, change func(*lampFacts)) error {
	h.mu.Lock()
	life := h.life
	h.mu.Unlock()
	if err := life.check(); err != nil {
		return err
	}
	if h.policy.DryRun {
		return kube.ErrReadOnly
	}
	lamp, err := h.Lamp(ctx, name)
	if err != nil {
		return err
	}
	change(&lamp)
	h.mu.Lock()
	h.effects = append(h.effects, effect)
	if name == "porch" {
		h.porch = lamp
	}
	h.mu.Unlock()
	if name != "porch" {
		h.put(name, lamp)
	}
	return nil
}

// did expects exactly these effects since the beginning.
func (h *house) did(want ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.effects, want) {
		h.t.Errorf("done was %q, want %q", h.effects, want)
	}
}

// is expects the lamp to be in that state.
func (h *house) is(name string, want journal.State) {
	h.t.Helper()
	for _, t := range h.state().Things {
		if t.Machine() == lampName && t.Name == name {
			if t.State != want {
				h.t.Errorf("lamp %s is %s, want %s", name, t.State, want)
			}
			return
		}
	}
	h.t.Errorf("there is no lamp %s", name)
}

// says expects a text to have these parts, in that order.
func (h *house) says(what, text string, parts ...string) {
	h.t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			h.t.Errorf("%s does not say %q, after what comes before it:\n%s", what, part, text)
			return
		}
		rest = after
	}
}

func (h *house) status(in *incarnation, format string) string {
	h.t.Helper()
	status, err := in.Backend(nil).Status(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var out strings.Builder
	if err := view.Status(&out, status, format, view.StatusOptions{Words: h.capabilities().Vocabulary()}); err != nil {
		h.t.Fatal(err)
	}
	return out.String()
}

func (h *house) history(format string) string {
	h.t.Helper()
	var out strings.Builder
	history, err := view.NewHistory(&out, format, view.Options{Words: h.capabilities().Vocabulary(), Now: time.Now()})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, event := range h.events(journal.Query{}) {
		if err := history.Event(event); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := history.Flush(); err != nil {
		h.t.Fatal(err)
	}
	return out.String()
}

// measured returns the value of a metric with that label.
func (h *house) measured(name, label string) float64 {
	h.t.Helper()
	families, err := h.metrics.Gatherer().Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if family.GetName() == name && pair.GetValue() == label {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// noted expects Kubernetes Events about a lamp for these reasons.
func (h *house) noted(name string, want ...string) {
	h.t.Helper()
	reasons := map[string]bool{}
	for _, event := range h.cluster.Events() {
		if event.About.Kind == lampKind && event.About.Name == name {
			reasons[event.Note.Reason] = true
		}
	}
	for _, reason := range want {
		if !reasons[reason] {
			h.t.Errorf("no Kubernetes Event says %s, only %v", reason, slices.Sorted(maps.Keys(reasons)))
		}
	}
}

// diesUnscrewing has an incarnation die when the old bulb is out and the journal does
// not say so.
func diesUnscrewing(in *incarnation) {
	in.store.stalls = func(drafts []journal.Draft) bool {
		return slices.ContainsFunc(drafts, func(d journal.Draft) bool {
			done, is := d.Payload.(*journal.StepDone)
			return is && done.Step == doesUnscrew
		})
	}
}

// diesPlanning has an incarnation die before a plan is in the journal.
func diesPlanning(in *incarnation) {
	in.store.stalls = func(drafts []journal.Draft) bool {
		return slices.ContainsFunc(drafts, func(d journal.Draft) bool { return d.Type == journal.TypeActionPlanned })
	}
}

// halfRenewed ends with the lamp's bulb out, and nobody alive.
func (h *house) halfRenewed() {
	h.t.Helper()
	h.server.Put(observerstest.Node("b", "uid-b"))
	in := h.live(diesUnscrewing)
	pass(5 * time.Minute)
	h.is("desk", lampBurning)
	h.put("desk", lampFacts{UID: "uid-desk", Lit: true, Worn: true, Bulb: "E27"})
	pass(time.Minute)
	h.is("desk", lampRenewing)
	in.life.kill()
	h.t.Logf("the first one ended: %v", <-in.ended)
	h.did("switch-on desk", "unscrew desk")
	if open := h.onlyOpen(); !open.PastNoReturn {
		h.t.Errorf("the action is not past its point of no return: %+v", open)
	}
}

func TestALampBurnsWhileThereAreTwoNodes(t *testing.T) {
	inAHouse(t, func(h *house) {
		in := h.live(nil)
		pass(10 * time.Minute)
		h.is("desk", lampDark)
		h.is("porch", lampBurning)
		h.did()
		h.server.Put(observerstest.Node("b", "uid-b"))
		h.mu.Lock()
		h.porch.Lit = false
		h.mu.Unlock()
		pass(5 * time.Minute)
		h.is("desk", lampBurning)
		h.is("porch", lampBurning)
		h.did("switch-on desk", "switch-on porch")
		h.says("the status", h.status(in, "wide"), "MACHINE  THING", "lamp     desk   Burning", "lamp     porch  Burning")
		h.says("the status", h.status(in, "json"), `"things"`, `"machine": "lamp"`, `"name": "desk"`, `"state": "Burning"`)
		h.says("the log", h.log.String(), `msg="lamp is Burning"`, "lamp=desk")
		if n := h.measured("ekco_machines", lampName); n != 2 {
			t.Errorf("measured are %v lamps", n)
		}
		h.noted("desk", "LampBurning", "ActionEnded")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestABulbIsRenewedThroughADeathInTheMiddle(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.halfRenewed()
		h.closeJournal()
		h.openJournal("journal.db")
		in := h.live(nil)
		pass(5 * time.Minute)
		h.is("desk", lampBurning)
		h.did("switch-on desk", "unscrew desk", "screw-in desk", "switch-on desk")
		h.says("the history", h.history("table"), "lamp desk is dark", "lamp desk: Burning → Renewing: its bulb is being renewed", "Renewing → Dark")
		h.says("the tree", h.history("tree"), "renew-bulb desk: done", "requested by operator: its bulb is worn", "unscrew", "already", "screw-in")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		replayed := fsm.NewState(h.capabilities().Machines()...)
		for _, event := range h.events(journal.Query{}) {
			replayed.Apply(event)
		}
		want, err := replayed.Snapshot()
		got, gotErr := h.state().Snapshot()
		if err != nil || gotErr != nil || !slices.Equal(got.State, want.State) {
			t.Errorf("a replay differs from the live state: %v %v\n%s\n%s", err, gotErr, want.State, got.State)
		}
	})
}

// TestABulbThatWasTakenOutBeforeThePlanIsKnownFromTheRequest: the request is read by
// another incarnation than the one that wrote it, and from the mirror by another EKCO.
func TestABulbThatWasTakenOutBeforeThePlanIsKnownFromTheRequest(t *testing.T) {
	for _, file := range []string{"journal.db", "another.db"} {
		t.Run(file, func(t *testing.T) {
			inAHouse(t, func(h *house) {
				h.put("desk", lampFacts{UID: "uid-desk", Worn: true, Bulb: "E27"})
				h.server.Put(observerstest.Node("b", "uid-b"))
				in := h.live(diesPlanning)
				pass(5 * time.Minute)
				in.life.kill()
				h.t.Logf("the first one ended: %v", <-in.ended)
				if open := h.onlyOpen(); open.Planned {
					t.Fatalf("the action is planned: %+v", open)
				}
				h.put("desk", lampFacts{UID: "uid-desk", Worn: true})
				h.closeJournal()
				h.openJournal(file)
				in = h.live(nil)
				pass(20 * time.Minute)
				if lamp, err := h.Lamp(t.Context(), "desk"); err != nil || lamp.Bulb != "E27" {
					t.Errorf("%v: the lamp is %+v; the size of the bulb was known to the request alone", err, lamp)
				}
				if err := in.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCrashMatrixOfALamp kills EKCO before and after each append of a bulb's renewal,
// starts it again on the same file, and expects that each effect happened once.
func TestCrashMatrixOfALamp(t *testing.T) {
	var did map[string]int
	inAHouse(t, func(h *house) { did = map[string]int{dyingAppends: h.renewed(nil).store.appends} })
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			inAHouse(t, func(h *house) {
				h.renewed(func(in *incarnation) { fate.arm(nil, in) })
			})
		})
	}
}

// renewed plays how a lamp is lit and its bulb renewed; the first incarnation may
// die, and is followed by a second. It returns the first.
func (h *house) renewed(arm func(*incarnation)) *incarnation {
	h.t.Helper()
	h.server.Put(observerstest.Node("b", "uid-b"))
	first := h.live(arm)
	last := first
	goOn := func() {
		pass(5 * time.Minute)
		if last == first && first.life.check() != nil {
			h.t.Logf("the first one ended: %v", <-first.ended)
			h.closeJournal()
			h.openJournal("journal.db")
			last = h.live(nil)
			pass(5 * time.Minute)
		}
	}
	goOn()
	h.put("desk", lampFacts{UID: "uid-desk", Lit: true, Worn: true, Bulb: "E27"})
	goOn()
	if err := last.stop(); err != nil {
		h.t.Error(err)
	}
	h.is("desk", lampBurning)
	h.did("switch-on desk", "unscrew desk", "screw-in desk", "switch-on desk")
	if open := h.state().OpenActions(); len(open) != 0 {
		h.t.Errorf("actions are left open: %+v", open)
	}
	return first
}

func TestAnotherEKCOFinishesABulbFromTheMirrorAlone(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.halfRenewed()
		h.closeJournal()
		h.openJournal("another.db")
		in := h.live(nil)
		pass(20 * time.Minute)
		h.is("desk", lampBurning)
		h.did("switch-on desk", "unscrew desk", "screw-in desk", "switch-on desk")
		if n := len(h.events(journal.Query{Types: []journal.Type{journal.TypeActionAdopted}})); n != 1 {
			t.Errorf("%d actions were adopted", n)
		}
		if lamp, err := h.Lamp(t.Context(), "desk"); err != nil || lamp.Bulb != "E27" {
			t.Errorf("%v: the lamp is %+v; the size of the bulb was known to the plan alone", err, lamp)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestADryRunLightsNoLampAndSaysSoOnce(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.policy.DryRun = true
		h.server.Put(observerstest.Node("b", "uid-b"))
		in := h.live(nil)
		pass(time.Hour)
		h.is("desk", lampDark)
		h.did()
		ended := h.events(journal.Query{Types: []journal.Type{journal.TypeActionEnded}})
		if len(ended) != 1 || !strings.Contains(string(ended[0].Payload), string(journal.OutcomeDryRun)) {
			t.Errorf("ended are %+v", ended)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARuleOfLampsHoldsThemAndIsExplained(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.server.Put(observerstest.Node("b", "uid-b"))
		h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27", Daylight: true})
		in := h.live(nil)
		pass(10 * time.Minute)
		h.did()
		h.says("the status", h.status(in, "wide"), "NEXT", "light lamp desk: blocked by Daylight: there is daylight")
		h.noted("desk", ruleDaylight)
		if n := h.measured("ekco_refusals", ruleDaylight); n != 1 {
			t.Errorf("measured are %v refusals", n)
		}
		h.overTheSocket(in, func(client *api.Client) {
			h.says("the explanation", h.explained(client, api.ThingRequest{Kind: "lamp", Name: "desk"}),
				"lamp desk (uid uid-desk)", "State:    Dark, since", "Because:  of #", "lamp desk is dark", "No action is open",
				"NEXT", "light lamp desk: blocked by Daylight: there is daylight")
			h.says("what a person would bring about", h.wouldRenew(client),
				"renew-bulb of lamp desk", "1. unscrew (", "cannot be cancelled once it has started", "2. screw-in", "bulb: E27",
				checkStillThere, "pass", ruleDaylight, "warn", "there is daylight")
		})
		h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27"})
		pass(5 * time.Minute)
		h.did("switch-on desk")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// overTheSocket asks as a person's command does. No simulated time passes meanwhile.
func (h *house) overTheSocket(in *incarnation, ask func(*api.Client)) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	listener, err := api.Listen(ctx, filepath.Join(h.dir, "journal.sock"))
	if err != nil {
		h.t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.Serve(ctx, listener, in.Backend(nil), h.logger()); err != nil {
			h.t.Errorf("serve: %v", err)
		}
	})
	defer serving.Wait()
	defer stop()
	client, err := api.Dial(ctx, filepath.Join(h.dir, "journal.sock"))
	if err != nil {
		h.t.Error(err)
		return
	}
	defer client.Close()
	ask(client)
}

// explained says why a thing is as it is, as an administrator is told.
func (h *house) explained(client *api.Client, about api.ThingRequest) string {
	h.t.Helper()
	things, err := client.ExplainThing(h.t.Context(), about)
	if err != nil {
		h.t.Error(err)
		return ""
	}
	var out strings.Builder
	err = view.Things(&out, things, api.Status{}, view.Options{Words: h.capabilities().Vocabulary(), Lookup: func(seq uint64) (journal.Event, bool) {
		found := h.events(journal.Query{After: seq - 1, Limit: 1})
		return found[0], true
	}})
	if err != nil {
		h.t.Error(err)
	}
	return out.String()
}

// askRenew is a person's wish for a new bulb in the lamp on the desk.
func askRenew(input string) fsm.Request {
	return fsm.Request{Kind: kindRenew, Name: "desk", Input: []byte(input)}
}

// wouldRenew says what a person who asks for a new bulb would bring about.
func (h *house) wouldRenew(client *api.Client) string {
	h.t.Helper()
	explanation, err := client.Explain(h.t.Context(), askRenew(""))
	if err != nil {
		h.t.Error(err)
		return ""
	}
	var out strings.Builder
	if err := view.Explanation(&out, explanation, "", false); err != nil {
		h.t.Error(err)
	}
	return out.String()
}

func TestAPersonAsksForABulbAndIsRefusedWhatMustNotBe(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.put("bare", lampFacts{UID: "uid-bare"})
		in := h.live(nil)
		pass(time.Minute)
		h.overTheSocket(in, func(client *api.Client) {
			for name, test := range map[string]struct {
				request fsm.Request
				want    error
				says    string
				records string
			}{
				"a kind that is not manual": {fsm.Request{Kind: kindLight, Name: "desk"}, fsm.ErrRefused, `you cannot request "light-lamp", only purge-node or renew-bulb`, ""},
				"an unknown lamp":           {fsm.Request{Kind: kindRenew, Name: "desc"}, api.ErrNotFound, `unknown lamp "desc": EKCO sees no such name; did you mean desk?`, ""},
				"a thing of another sort":   {fsm.Request{Kind: kindRenew, Name: "a"}, fsm.ErrUnknown, `unknown lamp "a"`, ""},
				"a rule that is firm":       {fsm.Request{Kind: kindRenew, Name: "bare"}, fsm.ErrRefused, "refused by Bulb: there is no bulb in it", "bare"},
				"another lamp than shown":   {fsm.Request{Kind: kindRenew, Name: "desk", UID: "uid-old"}, fsm.ErrRefused, "refused by Replaced", "desk"},
				"a bulb of no size":         {askRenew(`{"size":"E99"}`), fsm.ErrRefused, `no bulb of size "E99"`, "desk"},
			} {
				seq := h.state().Seq
				_, err := client.Request(h.t.Context(), test.request)
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v", name, err)
				}
				var recorded string
				for _, event := range h.events(journal.Query{After: seq, Types: []journal.Type{journal.TypeActionRefused}}) {
					recorded += event.Subject.Name
				}
				if recorded != test.records {
					t.Errorf("%s: a refusal of %q is recorded, want %q", name, recorded, test.records)
				}
			}
		})
		h.did()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPersonsBulbIsScrewedInWhateverOnlyKeepsEKCOFromIt(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27", Daylight: true})
		in := h.live(diesUnscrewing)
		pass(time.Minute)
		request := askRenew(`{"size":"E14"}`)
		var action string
		h.overTheSocket(in, func(client *api.Client) {
			admitted, err := client.Request(h.t.Context(), request)
			again, againErr := client.Request(h.t.Context(), request)
			if err != nil || againErr != nil || admitted.Resumed || !again.Resumed || again.Action != admitted.Action {
				t.Errorf("admitted %+v, %v; again %+v, %v", admitted, err, again, againErr)
			}
			action = admitted.Action
		})
		pass(time.Minute)
		h.says("the explanation", h.explainedOf(in, action), "lamp desk (uid uid-desk)", "State:    Renewing", "OPEN ACTIONS", action, "requested by cli:")
		in.life.kill()
		t.Logf("the first one ended: %v", <-in.ended)
		h.closeJournal()
		h.openJournal("journal.db")
		in = h.live(nil)
		pass(5 * time.Minute)
		h.did("unscrew desk", "screw-in desk")
		if lamp, err := h.Lamp(h.t.Context(), "desk"); err != nil || lamp.Bulb != "E14" {
			t.Errorf("%v: the lamp is %+v", err, lamp)
		}
		h.says("the explanation", h.explainedOf(in, ""), "No action is open", "LAST ACTIONS", action+": done")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// explainedOf asks over the socket for the lamp on the desk, or for an action's thing.
func (h *house) explainedOf(in *incarnation, action string) (text string) {
	h.t.Helper()
	about := api.ThingRequest{Kind: "Lamp", Name: "desk"}
	if action != "" {
		about = api.ThingRequest{Action: action}
	}
	h.overTheSocket(in, func(client *api.Client) { text = h.explained(client, about) })
	return text
}

func TestEKCODoesNotFightOverALamp(t *testing.T) {
	inAHouse(t, func(h *house) {
		h.server.Put(observerstest.Node("b", "uid-b"))
		in := h.live(nil)
		for range 3 {
			pass(5 * time.Minute)
			h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27"})
		}
		pass(5 * time.Minute)
		h.did("switch-on desk", "switch-on desk")
		h.says("the status", h.status(in, "wide"), "until then blocked by "+fsm.RuleContested, "the switch of lamp desk back to off")
		h.says("the explanation", h.explainedOf(in, ""), fsm.RuleContested, "CONTESTED", "switch: another program keeps changing it; last set by light-desk-")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatEKCOHasBegunDoesNotGoOnWhileItsChangeIsContested(t *testing.T) {
	inAHouse(t, func(h *house) {
		in := h.live(nil) // with one node, so that no lamp is lit
		pass(time.Minute)
		if err := in.stop(); err != nil {
			h.t.Fatal(err)
		}
		subject := journal.Subject{Kind: lampKind, Name: "desk", UID: "uid-desk"}
		tell := func(action string, payload journal.Payload) {
			if _, err := h.store.Append(h.t.Context(), journal.Draft{
				Type: journal.TypeOf(payload), Subject: subject, Action: action, Actor: Actor, Payload: payload,
			}); err != nil {
				h.t.Fatal(err)
			}
		}
		request := journal.ActionRequested{Kind: kindLight, Change: &journal.Change{
			Key: "switch", Field: "the switch of lamp desk", From: "off", To: "on",
		}}
		for _, action := range []string{"light-desk-1", "light-desk-2"} {
			tell(action, request)
			tell(action, journal.ActionEnded{Outcome: journal.OutcomeDone})
		}
		tell("light-desk-3", request)
		in = h.live(nil)
		pass(50 * time.Minute)
		h.did()
		if held := h.heldBy(); !slices.Equal(held, []string{fsm.RuleContested}) {
			t.Errorf("held by %q", held)
		}
		h.says("the status", h.status(in, "wide"), "another program keeps changing the switch of lamp desk back to off")
		pass(15 * time.Minute)
		h.did("switch-on desk")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheDocsWalkThroughWhatIsInTheFile(t *testing.T) {
	page, err := os.ReadFile("../../../docs/capabilities.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("lamp_test.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(lamp[A-Za-z]*|lightLamp|renewBulb)`").FindAllSubmatch(page, -1)
	if len(named) < 10 {
		t.Errorf("the page names only %d parts", len(named))
	}
	for _, name := range named {
		if !regexp.MustCompile(`(?m)^(func|type|var) ` + string(name[1]) + `\b`).Match(source) {
			t.Errorf("there is no %s", name[1])
		}
	}
}
