package hosttask

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Nodes has the calls of the Kubernetes API that host tasks need in addition to kube.Objects. [kube.Client] implements
// it.
type Nodes interface {
	Node(ctx context.Context, name string) (kube.Node, error)
	ForceDeletePod(ctx context.Context, namespace, name, uid string) error
	PodLog(ctx context.Context, namespace, name string, last int64) (string, error)
	PodsLabelled(namespace, label, value string) kube.Source
}

// Tasks creates, watches and removes the pods of host tasks. It limits how many tasks run at the same time, so all
// tasks of a namespace must share one Tasks. It is safe for concurrent use.
type Tasks struct {
	objects   kube.Objects
	nodes     Nodes
	namespace string
	log       *slog.Logger

	places  places
	notices notices
	mu      sync.Mutex
	// known has the pods that EKCO has seen, by UID.
	known map[string]*known
}

// known has the data that Tasks remembers about a pod.
type known struct {
	since time.Time
	// relayed is the number of lines of the pod's log that were copied to EKCO's log.
	relayed int
}

// New returns Tasks for the pods in a namespace. It copies the logs of the pods to log. The caller must also run
// [Tasks.SweepRegularly], which removes unattended pods.
func New(objects kube.Objects, nodes Nodes, namespace string, log *slog.Logger) *Tasks {
	return &Tasks{
		objects: objects, nodes: nodes, namespace: namespace, log: log, places: newPlaces(), known: map[string]*known{},
		notices: notices{source: nodes.PodsLabelled(namespace, LabelHostTask, "true"), waiting: map[string]chan struct{}{}},
	}
}

// ForeignError means that a pod of another owner has the name of the task's pod.
type ForeignError struct{ Why string }

// Error implements error.
func (e *ForeignError) Error() string { return e.Why }

// NodeError is the reason why a node cannot run a task.
type NodeError struct {
	Why string
	// Gone is set if the node was removed from the cluster or replaced.
	Gone bool
	// Replaced is set if another node has the name now.
	Replaced bool
}

// Error implements error.
func (e *NodeError) Error() string { return e.Why }

func (t *Tasks) ref(name string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: t.namespace, Name: name}
}

// The limits of the retries of Make. maxTriesIfTaken applies if a pod with the name appears while Make creates it.
// maxTriesIfUnanswered applies if the API server does not answer, because the pod may exist although the answer was
// lost.
const (
	maxTriesIfTaken      = 4
	maxTriesIfUnanswered = 2
)

// Make ensures that the task has one of the [AtOnce] places, and a pod that starts, runs or has ended. If the pod is
// Lost, Make removes it first. Make returns a *[NodeError] if the node cannot run the task, a *[ForeignError] if a pod
// of another owner has the name, and [ErrBusy] if no place becomes free in time. It also fails if a pod exists again
// after each removal. [Tasks.Leave] frees the place.
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
		case taken == maxTriesIfTaken:
			return fmt.Errorf("pod %s/%s still exists after its removal; check whether a finalizer keeps it: %w", t.namespace, task.PodName(owner), err)
		case unanswered == maxTriesIfUnanswered:
			return err
		}
	}
}

func (t *Tasks) tryMake(ctx context.Context, task Task, owner Owner) error {
	status, err := t.Look(ctx, task, owner)
	switch {
	case err != nil:
		return err
	case status.State == Foreign:
		return &ForeignError{status.Why}
	case status.State == Lost:
		err = t.Remove(ctx, task, owner)
	case status.State != Absent:
		t.places.keep(task.PodName(owner))
		return nil
	}
	if err == nil {
		err = t.CheckNode(ctx, task)
	}
	if err == nil {
		err = t.create(ctx, task, owner)
	}
	return err
}

// create creates the pod once a place is free.
func (t *Tasks) create(ctx context.Context, task Task, owner Owner) error {
	pod, err := task.pod(t.namespace, owner)
	if err != nil {
		return err
	}
	name := task.PodName(owner)
	if err := t.places.take(ctx, name, t.unfinishedPods); err != nil {
		return err
	}
	_, err = t.objects.CreateObject(ctx, t.ref(name), pod)
	switch {
	case overQuota(err):
		return fmt.Errorf("the quota of namespace %s does not allow the pod; raise it: %w", t.namespace, err)
	case refusedAsUnsafe(err):
		return fmt.Errorf("the pod security of namespace %s does not allow the pod, which has directories of its host; label the namespace pod-security.kubernetes.io/enforce=privileged: %w", t.namespace, err)
	case err != nil:
		return fmt.Errorf("create the pod of host task %s on node %s: %w", task.Name, task.Node, kube.NamePermission(err, "create", "pods"))
	}
	return nil
}

// overQuota reports whether the API server refused a pod because of the namespace's quota. refusedAsUnsafe reports
// whether it refused a pod because of pod security. The API server returns both errors like a missing permission.
func overQuota(err error) bool {
	return errors.Is(err, kube.ErrForbidden) && strings.Contains(err.Error(), "exceeded quota")
}

func refusedAsUnsafe(err error) bool {
	return errors.Is(err, kube.ErrForbidden) && strings.Contains(err.Error(), "violates PodSecurity")
}

// list reads the pods of all host tasks.
func list[T any](ctx context.Context, t *Tasks) ([]T, error) {
	list, err := kube.List[T](ctx, t.objects, t.ref(""), LabelHostTask, "true")
	if err != nil {
		return nil, fmt.Errorf("list the host tasks: %w", kube.NamePermission(err, "list", "pods"))
	}
	return list, nil
}

// pods returns the pods of all host tasks.
func (t *Tasks) pods(ctx context.Context) ([]corev1.Pod, error) { return list[corev1.Pod](ctx, t) }

// podPhase is a part of a pod. Decoding the whole pod takes several times as long.
type podPhase struct {
	Metadata metav1.ObjectMeta
	Status   struct{ Phase corev1.PodPhase }
}

// unfinishedPods lists the pods of host tasks that have not ended. It leaves out a user's copy of a pod.
func (t *Tasks) unfinishedPods(ctx context.Context) ([]string, error) {
	pods, err := list[podPhase](ctx, t)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods {
		if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed && isEKCOs(&pod.Metadata) {
			names = append(names, pod.Metadata.Name)
		}
	}
	return names, nil
}

// CheckNode returns a *[NodeError] if the task's node cannot run the task. A cordoned node can run tasks.
func (t *Tasks) CheckNode(ctx context.Context, task Task) error {
	node, err := t.nodes.Node(ctx, task.Node)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return &NodeError{Why: "node " + task.Node + " is no longer part of the cluster", Gone: true}
	case err != nil:
		return err
	case node.UID != task.NodeUID:
		return &NodeError{Why: "node " + task.Node + " was replaced by another of its name", Gone: true, Replaced: true}
	}
	if why := NotReady(node); why != "" {
		return &NodeError{Why: why}
	}
	return nil
}

// NotReady returns the reason why a node cannot run a task now, or "".
func NotReady(node kube.Node) string {
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

// Look returns the state of the task, and copies the new lines of its program's log to EKCO's log.
func (t *Tasks) Look(ctx context.Context, task Task, owner Owner) (TaskStatus, error) {
	status, err := t.look(ctx, task, owner)
	status.Why = shortened(status.Why) // the journal stores it, and the length of a kubelet's message has no limit
	return status, err
}

func (t *Tasks) look(ctx context.Context, task Task, owner Owner) (TaskStatus, error) {
	name := task.PodName(owner)
	pod, err := t.read(ctx, name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return TaskStatus{State: Absent, Why: "it has no pod"}, nil
	case err != nil:
		return TaskStatus{}, fmt.Errorf("check host task %s on node %s: %w", task.Name, task.Node, kube.NamePermission(err, "get", "pods"))
	case !owns(&pod.ObjectMeta, owner):
		return TaskStatus{State: Foreign, Why: fmt.Sprintf("pod %s/%s has the name of EKCO's pod, but EKCO did not create it; delete it", t.namespace, name)}, nil
	}
	status, ended := task.stateOf(pod, t.age(pod))
	switch {
	case ended:
		return t.readOutcome(ctx, task, pod)
	case pod.Status.Phase == corev1.PodFailed && task.Then != nil:
		status.Why += t.endOfLog(ctx, pod)
	case status.State == Running && !kube.PodReady(pod) && !task.LosesNode:
		return t.lostWithNode(ctx, task, status)
	case status.State == Running:
		log := t.copyLog(ctx, task, pod)
		if outcome, err := outcomeOf(log); err == nil && task.Trial && outcome.Waits {
			status.State, status.Result = Reported, outcome.Result
		}
	}
	return status, nil
}

func (t *Tasks) read(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := kube.Get[corev1.Pod](ctx, t.objects, t.ref(name))
	return &pod, err
}

func owns(pod *metav1.ObjectMeta, owner Owner) bool {
	return pod.Labels[LabelHostTask] == "true" && pod.Labels[LabelOwner] == owner.key()
}

// lostWithNode returns Lost for a running task whose pod is not ready if its node is gone or does not answer.
func (t *Tasks) lostWithNode(ctx context.Context, task Task, status TaskStatus) (TaskStatus, error) {
	var lost *NodeError
	err := t.CheckNode(ctx, task)
	if errors.As(err, &lost) {
		return TaskStatus{State: Lost, Why: lost.Why + ", while the task ran there"}, nil
	}
	return status, err
}

// readOutcome reads the outcome of an ended program from its log.
func (t *Tasks) readOutcome(ctx context.Context, task Task, pod *corev1.Pod) (TaskStatus, error) {
	t.copyLog(ctx, task, pod)
	if task.Then != nil {
		return t.onItsNode(ctx, task, TaskStatus{State: Ended, Result: json.RawMessage(`{}`)})
	}
	status := TaskStatus{State: Lost}
	log, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, lastLines)
	switch {
	case errors.Is(err, kube.ErrForbidden), errors.Is(err, kube.ErrUnavailable):
		return TaskStatus{}, fmt.Errorf("read the outcome of host task %s on node %s: %w", task.Name, task.Node, kube.NamePermission(err, "get", "pods/log"))
	case err != nil: // the kubelet may return it later
		status.State, status.Why = Running, "the program has ended, but its outcome cannot be read: "+err.Error()
		return status, nil //nolint:nilerr // the status reports the error
	}
	outcome, err := outcomeOf(log)
	switch {
	case err != nil:
		status.Why = err.Error()
	case outcome.Failed != "":
		status.Why, status.Worse = outcome.Failed, outcome.Worse
	case outcome.Waits:
		status.Why, status.Worse = "the program has ended without saying whether its change was kept", true
	default:
		status.State, status.Result = Ended, outcome.Result
		return t.onItsNode(ctx, task, status)
	}
	return status, nil
}

// endOfLog returns the last lines of the log of a program that has failed.
func (t *Tasks) endOfLog(ctx context.Context, pod *corev1.Pod) string {
	log, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, lastLines)
	if err != nil || strings.TrimSpace(log) == "" {
		return ""
	}
	return fmt.Sprintf("; the last lines of its log: %q", strings.TrimSpace(log))
}

// onItsNode returns Lost for an ended task if its node was replaced, because the new node may have run the task.
func (t *Tasks) onItsNode(ctx context.Context, task Task, status TaskStatus) (TaskStatus, error) {
	var lost *NodeError
	err := t.CheckNode(ctx, task)
	switch {
	case !errors.As(err, &lost):
		return status, err
	case lost.Replaced:
		return TaskStatus{State: Lost, Why: lost.Why}, nil
	}
	return status, nil
}

// copyLog copies the new lines of a program's log to EKCO's log, and returns the program's whole log. It ignores
// errors, because only the outcome is needed.
func (t *Tasks) copyLog(ctx context.Context, task Task, pod *corev1.Pod) string {
	text, err := t.nodes.PodLog(ctx, t.namespace, pod.Name, 0)
	log := t.log.With("task", task.Name, "node", task.Node)
	if err != nil {
		log.Debug("cannot read the log of a host task", "error", err)
		return ""
	}
	// A line without a newline is not complete yet.
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	for _, line := range t.newLines(pod, lines) {
		if !strings.HasPrefix(line, outcomeMark) {
			log.Info("host task says: " + strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines, "")
}

func (t *Tasks) newLines(pod *corev1.Pod, lines []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.remembered(pod)
	unrelayed := lines[min(of.relayed, len(lines)):]
	of.relayed = max(of.relayed, len(lines))
	return unrelayed
}

// age returns the time since EKCO first saw the pod, by EKCO's own clock.
func (t *Tasks) age(pod *corev1.Pod) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.remembered(pod).since)
}

// remembered returns the remembered data about a pod. The caller must hold mu.
func (t *Tasks) remembered(pod *corev1.Pod) *known {
	uid := string(pod.UID)
	if t.known[uid] == nil {
		t.known[uid] = &known{since: time.Now()}
	}
	return t.known[uid]
}

// Remove removes the task's pod in any state, even if its node does not answer. It returns nil if there is no pod, or
// if the pod with the name belongs to another owner.
func (t *Tasks) Remove(ctx context.Context, task Task, owner Owner) error {
	return t.removeIf(ctx, task, owner, func(*corev1.Pod) bool { return true })
}

// Answer sets [AnnotationConfirmed] on the task's pod to the refusal, or to "true" if there is no refusal. The outcome
// of the program shows whether the program saw the annotation in time.
func (t *Tasks) Answer(ctx context.Context, task Task, owner Owner, refusal string) error {
	ref := t.ref(task.PodName(owner))
	err := kube.Retry(kube.ErrConflict, func() error {
		raw, err := t.objects.ReadObject(ctx, ref)
		if err != nil {
			return err
		}
		raw, err = kube.Edit(ref, raw, func(object map[string]any) error {
			if pod := (unstructured.Unstructured{Object: object}); pod.GetLabels()[LabelOwner] != owner.key() {
				return kube.ErrNotFound
			}
			return unstructured.SetNestedField(object, cmp.Or(refusal, confirmed), "metadata", "annotations", AnnotationConfirmed)
		})
		if err == nil {
			_, err = t.objects.ReplaceObject(ctx, ref, raw)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("confirm host task %s on node %s: %w", task.Name, task.Node, kube.NamePermission(err, "update", "pods"))
	}
	return nil
}

// Tidy removes the task's pod when its step stops. It keeps the pod if its program runs, has ended, or may run
// unreported; see [Task.LosesNode].
func (t *Tasks) Tidy(ctx context.Context, task Task, owner Owner) error {
	return t.removeIf(ctx, task, owner, func(pod *corev1.Pod) bool {
		status, ended := task.stateOf(pod, t.age(pod))
		return !ended && status.State != Running && (!task.LosesNode || status.State != Starting)
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
	if err = kube.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("remove the pod of host task %s on node %s: %w", task.Name, task.Node, kube.NamePermission(err, "delete", "pods"))
	}
	return nil
}

// delete deletes a pod. If it succeeds, it forgets the pod's age.
func (t *Tasks) delete(ctx context.Context, pod *corev1.Pod) error {
	err := kube.IgnoreNotFound(t.nodes.ForceDeletePod(ctx, t.namespace, pod.Name, string(pod.UID)))
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

// Changed returns a channel that is closed when the task's pod changes. Without permission to watch pods, the channel
// stays open. Call [Tasks.Leave] afterwards.
func (t *Tasks) Changed(task Task, owner Owner) <-chan struct{} {
	return t.notices.channelFor(task.PodName(owner))
}

// Leave frees the place of a task when its step stops. If the program still runs, it still counts towards [AtOnce].
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
		return false, fmt.Errorf("check whether host task %s on node %s has a pod: %w", task.Name, task.Node, kube.NamePermission(err, "get", "pods"))
	}
	return !owns(&pod.ObjectMeta, owner), nil
}
