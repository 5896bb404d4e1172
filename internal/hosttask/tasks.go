package hosttask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Nodes is what host tasks need of the Kubernetes API besides objects. [kube.Client]
// has it.
type Nodes interface {
	Node(ctx context.Context, name string) (kube.Node, error)
	ForceDeletePod(ctx context.Context, namespace, name, uid string) error
	PodLog(ctx context.Context, namespace, name string, last int64) (string, error)
	PodsLabelled(namespace, label, value string) kube.Source
}

// Tasks makes, watches and removes the pods of host tasks. All that EKCO has on hosts goes
// through one, so that there are not too many at a time. It is safe for concurrent use.
type Tasks struct {
	objects   kube.Objects
	nodes     Nodes
	namespace string
	log       *slog.Logger

	places  places
	notices notices
	mu      sync.Mutex
	// known are the pods that were seen, by UID.
	known map[string]*known
}

// known is what must be remembered of a pod between two looks.
type known struct {
	since time.Time
	// told is how many lines of its log were passed on.
	told int
}

// New returns one for the pods in a namespace. What they log goes to log. Beside it must run
// [Tasks.KeepSwept], for what nobody attends to.
func New(objects kube.Objects, nodes Nodes, namespace string, log *slog.Logger) *Tasks {
	return &Tasks{
		objects: objects, nodes: nodes, namespace: namespace, log: log, places: newPlaces(), known: map[string]*known{},
		notices: notices{source: nodes.PodsLabelled(namespace, LabelHostTask, "true"), waiting: map[string]chan struct{}{}},
	}
}

// ForeignError is a pod of a task's name that is none of its own.
type ForeignError struct{ Why string }

// Error implements error.
func (e *ForeignError) Error() string { return e.Why }

// NodeError is a node on which nothing can be begun.
type NodeError struct {
	Why string
	// Gone is set if it will not come back: it is no part of the cluster any more.
	Gone bool
	// Replaced is set if another has its name by now.
	Replaced bool
}

// Error implements error.
func (e *NodeError) Error() string { return e.Why }

func (t *Tasks) ref(name string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: t.namespace, Name: name}
}

// How often Make tries in one go while it finds its pod made by then, and while it gets no
// answer, of which the answer alone may be lost.
const (
	triesTaken      = 4
	triesUnanswered = 2
)

// Make sees to it that the task has a pod that runs, is to, or has ended, and has a place
// among those that run. One that is lost is removed first. Its error is a *[NodeError] when
// the node cannot take it, a *[ForeignError] when its name is taken, [ErrBusy] when it found
// no place for a while. One that stays although it is removed is an error too, and no reason
// to try on and on. [Tasks.Leave] gives the place up.
func (t *Tasks) Make(ctx context.Context, task Task, owner Owner) error {
	for taken, unanswered := 0, 0; ; {
		err := t.tryMake(ctx, task, owner)
		switch {
		case errors.Is(err, kube.ErrConflict):
			taken++
		case errors.Is(err, kube.ErrUnavailable):
			unanswered++
		default:
			return err
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case taken == triesTaken:
			return fmt.Errorf("pod %s/%s is there again and again after its removal; look whether a finalizer keeps it: %w", t.namespace, task.PodName(owner), err)
		case unanswered == triesUnanswered:
			return err
		}
	}
}

func (t *Tasks) tryMake(ctx context.Context, task Task, owner Owner) error {
	seen, err := t.Look(ctx, task, owner)
	switch {
	case err != nil:
		return err
	case seen.State == Foreign:
		return &ForeignError{seen.Why}
	case seen.State == Lost:
		err = t.Remove(ctx, task, owner)
	case seen.State != Absent:
		t.places.keep(task.PodName(owner))
		return nil
	}
	if err == nil {
		err = t.Takes(ctx, task)
	}
	if err == nil {
		err = t.create(ctx, task, owner)
	}
	return err
}

// create asks for the pod once there is a place for it.
func (t *Tasks) create(ctx context.Context, task Task, owner Owner) error {
	pod, err := task.pod(t.namespace, owner)
	if err != nil {
		return err
	}
	name := task.PodName(owner)
	if err := t.places.take(ctx, name, t.under); err != nil {
		return err
	}
	_, err = t.objects.CreateObject(ctx, t.ref(name), pod)
	switch {
	case overQuota(err):
		return fmt.Errorf("the quota of namespace %s does not allow the pod; raise it: %w", t.namespace, err)
	case refusedAsUnsafe(err):
		return fmt.Errorf("the pod security of namespace %s does not allow the pod, which has directories of its host; label the namespace pod-security.kubernetes.io/enforce=privileged: %w", t.namespace, err)
	case err != nil:
		return fmt.Errorf("make the pod of host task %s on node %s: %w", task.Name, task.Node, kube.Lacking(err, "create", "pods"))
	}
	return nil
}

// overQuota reports whether the API server refused something for its namespace's quota,
// and refusedAsUnsafe for its pod security. Both look like a lack of permission.
func overQuota(err error) bool {
	return errors.Is(err, kube.ErrForbidden) && strings.Contains(err.Error(), "exceeded quota")
}

func refusedAsUnsafe(err error) bool {
	return errors.Is(err, kube.ErrForbidden) && strings.Contains(err.Error(), "violates PodSecurity")
}

// list reads the pods of all host tasks.
func (t *Tasks) list(ctx context.Context) ([]json.RawMessage, error) {
	list, err := t.objects.ListObjects(ctx, t.ref(""), LabelHostTask, "true")
	if err != nil {
		return nil, fmt.Errorf("list the host tasks: %w", kube.Lacking(err, "list", "pods"))
	}
	return list, nil
}

// pods returns those of all host tasks.
func (t *Tasks) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	pods := make([]corev1.Pod, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &pods[i]); err != nil {
			return nil, fmt.Errorf("read the pod of a host task: %w", err)
		}
	}
	return pods, nil
}

// under lists the pods of host tasks that have not ended. What somebody copied from one takes
// no place.
func (t *Tasks) under(ctx context.Context) ([]string, error) {
	list, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, raw := range list {
		var pod struct { // a fraction of what it takes to read a whole one
			Metadata metav1.ObjectMeta
			Status   struct{ Phase corev1.PodPhase }
		}
		if err := json.Unmarshal(raw, &pod); err != nil {
			return nil, fmt.Errorf("read the pod of a host task: %w", err)
		}
		if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed && ours(&pod.Metadata) {
			names = append(names, pod.Metadata.Name)
		}
	}
	return names, nil
}

// Takes says why the task's node cannot take it, by a *[NodeError], or nil. A node that is
// only cordoned can.
func (t *Tasks) Takes(ctx context.Context, task Task) error {
	node, err := t.nodes.Node(ctx, task.Node)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return &NodeError{Why: "node " + task.Node + " is no part of the cluster any more", Gone: true}
	case err != nil:
		return err
	case node.UID != task.NodeUID:
		return &NodeError{Why: "node " + task.Node + " was replaced by another of its name", Gone: true, Replaced: true}
	}
	if why := away(node); why != "" {
		return &NodeError{Why: why}
	}
	return nil
}

// away says why a node cannot be worked on, or "".
func away(node kube.Node) string {
	for _, taint := range node.Facts.Taints {
		switch taint.Key {
		case journal.TaintUnreachable:
			return "node " + node.Name + " does not answer"
		case journal.TaintNotReady:
			return "node " + node.Name + " is not ready"
		}
	}
	return ""
}

// Look sees how far the task is, and passes on what its program has logged meanwhile.
func (t *Tasks) Look(ctx context.Context, task Task, owner Owner) (Seen, error) {
	seen, err := t.look(ctx, task, owner)
	seen.Why = shortened(seen.Why) // it goes on record, and a kubelet can say anything
	return seen, err
}

func (t *Tasks) look(ctx context.Context, task Task, owner Owner) (Seen, error) {
	name := task.PodName(owner)
	pod, err := t.read(ctx, name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return Seen{State: Absent, Why: "it has no pod"}, nil
	case err != nil:
		return Seen{}, fmt.Errorf("look at host task %s on node %s: %w", task.Name, task.Node, kube.Lacking(err, "get", "pods"))
	case !owns(&pod.ObjectMeta, owner):
		return Seen{State: Foreign, Why: fmt.Sprintf("pod %s/%s is none of EKCO's, and has the name of its own; delete it", t.namespace, name)}, nil
	}
	seen, ended := task.judge(pod, t.age(pod))
	switch {
	case ended:
		return t.hear(ctx, task, pod)
	case pod.Status.Phase == corev1.PodFailed && task.Then != nil:
		seen.Why += t.lastWords(ctx, pod)
	case seen.State == Running && !ready(pod) && !task.LosesNode:
		return t.lostWithNode(ctx, task, seen)
	case seen.State == Running:
		t.relay(ctx, task, pod)
	}
	return seen, nil
}

func (t *Tasks) read(ctx context.Context, name string) (*corev1.Pod, error) {
	raw, err := t.objects.ReadObject(ctx, t.ref(name))
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", t.namespace, name, err)
	}
	return &pod, nil
}

func owns(pod *metav1.ObjectMeta, owner Owner) bool {
	return pod.Labels[LabelHostTask] == "true" && pod.Labels[LabelOwner] == owner.key()
}

// lostWithNode gives a running task up whose pod is shown as unready since its node is away.
func (t *Tasks) lostWithNode(ctx context.Context, task Task, seen Seen) (Seen, error) {
	var lost *NodeError
	err := t.Takes(ctx, task)
	if errors.As(err, &lost) {
		return Seen{State: Lost, Why: lost.Why + ", while the task ran there"}, nil
	}
	return seen, err
}

// hear reads what a program that has ended says came of it.
func (t *Tasks) hear(ctx context.Context, task Task, pod *corev1.Pod) (Seen, error) {
	t.relay(ctx, task, pod)
	if task.Then != nil {
		return t.onItsNode(ctx, task, Seen{State: Ended, Result: json.RawMessage(`{}`)})
	}
	seen := Seen{State: Lost}
	log, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, lastLines)
	switch {
	case errors.Is(err, kube.ErrForbidden), errors.Is(err, kube.ErrUnavailable):
		return Seen{}, fmt.Errorf("read what came of host task %s on node %s: %w", task.Name, task.Node, kube.Lacking(err, "get", "pods/log"))
	case err != nil: // the kubelet may give it later
		seen.State, seen.Why = Running, "the program has ended, and what came of it cannot be read: "+err.Error()
		return seen, nil //nolint:nilerr // it is what was seen
	}
	outcome, err := outcomeOf(log)
	switch {
	case err != nil:
		seen.Why = err.Error()
	case outcome.Failed != "":
		seen.Why = outcome.Failed
	default:
		seen.State, seen.Result = Ended, outcome.Result
		return t.onItsNode(ctx, task, seen)
	}
	return seen, nil
}

// lastWords returns the last lines of the log of a program that has failed.
func (t *Tasks) lastWords(ctx context.Context, pod *corev1.Pod) string {
	log, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, lastLines)
	if err != nil || strings.TrimSpace(log) == "" {
		return ""
	}
	return fmt.Sprintf("; the last lines of its log: %q", strings.TrimSpace(log))
}

// onItsNode gives up what has ended where the node was replaced meanwhile: the other one, of
// the same name, may have run it.
func (t *Tasks) onItsNode(ctx context.Context, task Task, seen Seen) (Seen, error) {
	var lost *NodeError
	err := t.Takes(ctx, task)
	switch {
	case !errors.As(err, &lost):
		return seen, err
	case lost.Replaced:
		return Seen{State: Lost, Why: lost.Why}, nil
	}
	return seen, nil
}

// relay passes on the lines of a log that were not passed on before. That it cannot be read
// is no reason to give up: what counts is the outcome.
func (t *Tasks) relay(ctx context.Context, task Task, pod *corev1.Pod) {
	text, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, 0)
	log := t.log.With("task", task.Name, "node", task.Node)
	if err != nil {
		log.Debug("cannot read the log of a host task", "error", err)
		return
	}
	// What does not end with a new line is not whole yet.
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	for _, line := range t.untold(pod, lines) {
		if !strings.HasPrefix(line, outcomeMark) {
			log.Info("host task says: " + strings.TrimRight(line, "\n"))
		}
	}
}

func (t *Tasks) untold(pod *corev1.Pod, lines []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(pod)
	untold := lines[min(of.told, len(lines)):]
	of.told = max(of.told, len(lines))
	return untold
}

// age is how long the pod is known to be there, by EKCO's own clock.
func (t *Tasks) age(pod *corev1.Pod) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.of(pod).since)
}

// of expects mu to be held.
func (t *Tasks) of(pod *corev1.Pod) *known {
	uid := string(pod.UID)
	if t.known[uid] == nil {
		t.known[uid] = &known{since: time.Now()}
	}
	return t.known[uid]
}

// Remove removes the task's pod, whatever state it is in, and whether or not its node
// answers. That there is none, or one that is not the task's, is no error.
func (t *Tasks) Remove(ctx context.Context, task Task, owner Owner) error {
	return t.removeIf(ctx, task, owner, func(*corev1.Pod) bool { return true })
}

// Tidy removes the task's pod unless its program runs or has ended, or may run unreported, see
// [Task.LosesNode]. It is for when nobody is going to look at the task for a while.
func (t *Tasks) Tidy(ctx context.Context, task Task, owner Owner) error {
	return t.removeIf(ctx, task, owner, func(pod *corev1.Pod) bool {
		seen, ended := task.judge(pod, t.age(pod))
		return !ended && seen.State != Running && !(task.LosesNode && seen.State == Starting)
	})
}

func (t *Tasks) removeIf(ctx context.Context, task Task, owner Owner, which func(*corev1.Pod) bool) error {
	name := task.PodName(owner)
	pod, err := t.read(ctx, name)
	if err == nil && (!owns(&pod.ObjectMeta, owner) || !which(pod)) {
		return nil
	}
	if err == nil {
		err = t.delete(ctx, pod)
	}
	if err = kube.Deleted(err); err != nil {
		return fmt.Errorf("remove the pod of host task %s on node %s: %w", task.Name, task.Node, kube.Lacking(err, "delete", "pods"))
	}
	return nil
}

// delete deletes a pod, and then forgets it: how long one is there that stays still counts.
func (t *Tasks) delete(ctx context.Context, pod *corev1.Pod) error {
	err := kube.Deleted(t.nodes.ForceDeletePod(ctx, t.namespace, pod.Name, string(pod.UID)))
	if err == nil {
		t.forget(string(pod.UID))
	}
	return err
}

func (t *Tasks) forget(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, uid)
}

// Changed returns what is closed once the task's pod changes, if EKCO may watch. After it
// follows [Tasks.Leave].
func (t *Tasks) Changed(task Task, owner Owner) <-chan struct{} {
	return t.notices.of(task.PodName(owner))
}

// Leave gives up the place of a task that is not attended to any more. If its program runs
// all the same, it still counts among those that do.
func (t *Tasks) Leave(task Task, owner Owner) {
	name := task.PodName(owner)
	t.notices.leave(name)
	t.places.leave(name)
}

// Gone reports whether the task has no pod.
func (t *Tasks) Gone(ctx context.Context, task Task, owner Owner) (bool, error) {
	pod, err := t.read(ctx, task.PodName(owner))
	if errors.Is(err, kube.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether host task %s on node %s has a pod: %w", task.Name, task.Node, kube.Lacking(err, "get", "pods"))
	}
	return !owns(&pod.ObjectMeta, owner), nil
}
