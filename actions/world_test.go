package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

const actionID = "a-1"

// world is a journal and a cluster that outlive the runners in a test.
type world struct {
	t       *testing.T
	store   *memory.Store
	cluster *kubesim.Cluster
	logged  strings.Builder
	logMu   sync.Mutex
	// beforeRequest, when set, is called before each request.
	beforeRequest func()
	// options, when set, are the parts of a purge as one incarnation reaches
	// them; a nil fuse never burns. describe tells of what they reach.
	options  func(f *fuse) []purge.Option
	describe func() string
}

// parts returns the parts of a purge beyond the Node.
func (w *world) parts(f *fuse) []purge.Option {
	if w.options == nil {
		return nil
	}
	return w.options(f)
}

func newWorld(t *testing.T) *world {
	return &world{t: t, store: memory.New(), cluster: kubesim.New()}
}

// Write implements io.Writer for the log.
func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.logged.Write(p)
}

func (w *world) config(kinds []actions.Definition) actions.Config {
	return actions.Config{
		Store: w.store, Kinds: joined(kinds),
		Log:        slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Preflights: policy(actions.Pass()),
	}
}

// joined returns the kinds as the product's wiring joins them. Those of the tests obey
// what purges do.
func joined(definitions []actions.Definition) []actions.Kind {
	kinds := make([]actions.Kind, 0, len(definitions))
	for _, definition := range definitions {
		terms := standingOf(definition.Kind)
		if terms.Rules == nil {
			terms.Rules = purgeRules()
		}
		kinds = append(kinds, actions.Kind{Definition: definition, Rules: terms.Rules, Domains: terms.Domains})
	}
	return kinds
}

func purgeRules() []string { return standingOf(journal.ActionPurgeNode).Rules }

// standingOf returns the terms of a product's kind.
func standingOf(kind journal.ActionKind) fsm.Terms {
	standing, err := fsm.Standing(fsmnode.Capability())
	if err != nil {
		panic(err)
	}
	return standing[kind]
}

// policy returns the preflights that the product's wiring supplies, all with
// the same answer.
func policy(verdict actions.Verdict) map[string]actions.Preflight {
	preflights := make(map[string]actions.Preflight)
	for _, name := range standing() {
		preflights[name] = always(verdict)
	}
	return preflights
}

// standing lists the rules of policy, which every kind of the tests obeys.
func standing() []string { return append([]string{actions.SafeMode}, purgeRules()...) }

func always(verdict actions.Verdict) actions.Preflight {
	return actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { return verdict })
}

func (w *world) append(actor string, payload journal.Payload, kind journal.Type) {
	w.t.Helper()
	w.appendAbout(journal.NodeSubject("w1", ""), actor, payload, kind)
}

func (w *world) appendAbout(subject journal.Subject, actor string, payload journal.Payload, kind journal.Type) {
	w.t.Helper()
	_, err := w.store.Append(w.t.Context(), journal.Draft{
		Type: kind, Subject: subject, Action: actionID, Actor: actor, Payload: payload,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// request puts a request on disk.
func (w *world) request(subject journal.Subject, request journal.ActionRequested) {
	w.t.Helper()
	if w.beforeRequest != nil {
		w.beforeRequest()
	}
	w.appendAbout(subject, "operator", request, journal.TypeActionRequested)
}

// requestPurge puts the request of a node's purge on disk as the machines write
// it: with what was last observed of the node.
func (w *world) requestPurge(node kube.Node, request journal.ActionRequested) {
	w.t.Helper()
	request.Kind = journal.ActionPurgeNode
	input := journal.PurgeInputOf(request)
	if input.Node == nil {
		facts := node.Facts
		if now, err := w.cluster.Node(w.t.Context(), node.Name); err == nil && now.UID == node.UID {
			facts = now.Facts
		}
		input.Node = &facts
	}
	request.Input = input
	w.request(journal.NodeSubject(node.Name, node.UID), request)
}

// record folds the open action from the journal, as a start does.
func (w *world) record() journal.ActionRecord {
	w.t.Helper()
	for _, record := range w.folded().OpenActions() {
		if record.ID == actionID {
			return record
		}
	}
	w.t.Fatalf("action %s is not open", actionID)
	return journal.ActionRecord{}
}

// folded folds the journal.
func (w *world) folded() *fsm.State {
	w.t.Helper()
	state := fsm.NewState(fsmnode.Capability())
	for event, err := range w.store.Read(w.t.Context(), journal.Query{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		state.Apply(event)
	}
	if len(state.Problems) > 0 {
		w.t.Fatalf("the journal does not fold: %q", state.Problems)
	}
	return state
}

// events returns the action's events.
func (w *world) events() []journal.Event {
	w.t.Helper()
	var events []journal.Event
	for event, err := range w.store.Read(w.t.Context(), journal.Query{Action: actionID}) {
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// story retells the action's events, one line each.
func (w *world) story() []string {
	w.t.Helper()
	var lines []string
	for _, event := range w.events() {
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, tell(payload))
	}
	return lines
}

func tell(payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.ActionRequested:
		return "requested"
	case *journal.ActionPlanned:
		return fmt.Sprintf("planned %d", len(p.Plan.Steps))
	case *journal.ActionWarned:
		return fmt.Sprintf("warned %s: %s (%s)", p.Preflight, p.Warning, p.Answer)
	case *journal.ActionHeld:
		return fmt.Sprintf("held %q by %s", p.Step, p.Preflight)
	case *journal.ActionReleased:
		return fmt.Sprintf("released %q by %s", p.Step, p.Preflight)
	case *journal.ActionLeft:
		return fmt.Sprintf("left %s: %s", p.What, p.Reason)
	case *journal.StepStarted:
		return fmt.Sprintf("started %s #%d", p.Step, p.Attempt)
	case *journal.StepDone:
		return fmt.Sprintf("done %s #%d%s%s", p.Step, p.Attempt, when(p.AlreadyDone, " already"), when(p.DryRun, " dry"))
	case *journal.StepFailed:
		return fmt.Sprintf("failed %s #%d%s", p.Step, p.Attempt, when(p.NextTry.IsZero(), " for good"))
	case *journal.ActionStalled:
		return "stalled " + p.Step
	case *journal.ActionRetried:
		return "retried"
	case *journal.ActionCancelling:
		return "cancelling"
	case *journal.ActionEnded:
		return strings.TrimSpace(fmt.Sprintf("ended %s %s", p.Outcome, p.Reason))
	}
	return fmt.Sprintf("%T", payload)
}

func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func (w *world) wantStory(want ...string) {
	w.t.Helper()
	if got := w.story(); !slices.Equal(got, want) {
		w.t.Errorf("the journal says\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// lastLine returns the last line of the story.
func (w *world) lastLine() string {
	lines := w.story()
	return lines[len(lines)-1]
}

// count returns how many lines of the story begin with the prefix.
func (w *world) count(prefix string) int {
	n := 0
	for _, line := range w.story() {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// running is a Run under way.
type running struct {
	t     testing.TB
	inbox *actions.Inbox
	stop  context.CancelFunc
	err   error
	ended chan struct{}
}

// start runs the folded action in a goroutine.
func (w *world) start(cfg actions.Config) *running {
	w.t.Helper()
	r := w.ready()
	r.begin(cfg, w.record())
	return r
}

// ready returns a Run that has not begun, for steps that signal their own.
func (w *world) ready() *running {
	return &running{t: w.t, inbox: actions.NewInbox(), ended: make(chan struct{})}
}

// begin runs the action in a goroutine.
func (r *running) begin(cfg actions.Config, record journal.ActionRecord) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.err = actions.NewRunner(cfg).Run(ctx, record, r.inbox)
	}()
}

// tell tells the Run of the newest event of that type, as the loop does.
func (w *world) tell(r *running, kind journal.Type) {
	w.t.Helper()
	query := journal.Query{Action: actionID, Types: []journal.Type{kind}, Reverse: true, Limit: 1}
	for event, err := range w.store.Read(w.t.Context(), query) {
		if err != nil {
			w.t.Fatal(err)
		}
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		r.inbox.Tell(event, payload)
		return
	}
	w.t.Fatalf("no %s to tell of", kind)
}

// wait waits for the end of the Run, a day of the bubble's time at most.
func (r *running) wait() error {
	defer r.stop()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(24 * time.Hour):
		return errors.New("the action has not ended within a day")
	}
}

// end waits for the end of the action, and returns how long that took.
func (r *running) end() time.Duration {
	r.t.Helper()
	began := time.Now()
	if err := r.wait(); err != nil {
		r.t.Fatalf("the action did not end: %v", err)
	}
	return time.Since(began)
}

// halt stops the Run in the middle of its action.
func (r *running) halt() {
	r.stop()
	_ = r.wait() // it was stopped, as asked
}

// retry has an administrator give the action a new budget.
func (w *world) retry(r *running) {
	w.append("cli:me@here", journal.ActionRetried{}, journal.TypeActionRetried)
	w.tell(r, journal.TypeActionRetried)
}

// runToEnd runs the folded action, which must end.
func (w *world) runToEnd(cfg actions.Config) {
	w.t.Helper()
	w.start(cfg).end()
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// letPass lets the bubble's time go on until everything has reacted to it.
func letPass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

const testKind journal.ActionKind = "test"

// script is an action whose steps are told what to do.
type script struct {
	steps, undo []journal.PlannedStep
	// plan, do, and prove may be nil: then all goes well, and the proof is that
	// do was called.
	plan  func() error
	do    func(ctx context.Context, id string) error
	prove func(ctx context.Context, id string) (bool, error)

	mu     sync.Mutex
	called []string
	atOnce int
	most   int
}

func (k *script) makePlan(context.Context, journal.ActionRecord) (journal.Plan, error) {
	if k.plan != nil {
		if err := k.plan(); err != nil {
			return journal.Plan{}, err
		}
	}
	return journal.Plan{Steps: k.steps, Undo: k.undo}, nil
}

func (k *script) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	k.mu.Lock()
	k.called = append(k.called, step.Planned.ID)
	k.atOnce++
	k.most = max(k.most, k.atOnce)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.atOnce--
	}()
	if k.do != nil {
		return nil, k.do(ctx, step.Planned.ID)
	}
	return nil, nil
}

func (k *script) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if k.prove != nil {
		done, err := k.prove(ctx, step.Planned.ID)
		return actions.Proof{Done: done, Missing: "the effect"}, err
	}
	return actions.Proof{Done: slices.Contains(k.calls(), step.Planned.ID)}, nil
}

func (k *script) calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.called)
}

func (k *script) definition() actions.Definition {
	return actions.Definition{
		Kind: testKind, AskedLast: []string{nodes.StillGone},
		Plan: k.makePlan, Steps: map[string]actions.Step{"act": k},
	}
}

func (k *script) kinds() []actions.Definition {
	return []actions.Definition{k.definition()}
}

func step(id string, after ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: "act", After: after, Timeout: journal.Duration(time.Minute)}
}

func guarded(id string, preflights ...string) journal.PlannedStep {
	s := step(id)
	s.Preflights = preflights
	return s
}

func (w *world) requestTest() { w.request(testSubject, journal.ActionRequested{Kind: testKind}) }

var (
	testSubject = journal.NodeSubject("w1", "uid-w1")
	errBroken   = errors.New("it is broken")
)
