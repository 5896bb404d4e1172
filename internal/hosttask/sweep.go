package hosttask

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// sweepInterval is how often unattended pods that cannot succeed are removed. Installers tolerate
// such a pod for 30 s.
const sweepInterval = 10 * time.Second

// unclaimedTimeout is how long a pod is kept after its program has ended if its action is not open here:
// another EKCO may be about to read the outcome.
const unclaimedTimeout = 5 * time.Minute

// lastSweepTimeout bounds the sweep when EKCO ends.
const lastSweepTimeout = 5 * time.Second

// KeepSwept calls [Tasks.Sweep] at intervals until ctx ends, and then [Tasks.Quit]. may reports
// whether pods may be removed now, open whether the action with an id is open.
func (t *Tasks) KeepSwept(ctx context.Context, may func() bool, open func(action string) bool) {
	trouble := ""
	for ctx.Err() == nil {
		t.sweepIf(ctx, may, &trouble, func(ctx context.Context) error { return t.Sweep(ctx, open) })
		select {
		case <-ctx.Done():
		case <-time.After(sweepInterval):
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSweepTimeout)
	defer cancel()
	t.sweepIf(ctx, may, &trouble, func(ctx context.Context) error { return t.Quit(ctx, open) })
}

// sweepIf sweeps if it may. trouble is why the last sweep failed; each reason is a warning once.
func (t *Tasks) sweepIf(ctx context.Context, may func() bool, trouble *string, sweep func(context.Context) error) {
	if !may() {
		return
	}
	err := sweep(ctx)
	level := slog.LevelWarn
	switch {
	case err == nil && *trouble != "":
		t.log.Info("the pods of host tasks that are left behind can be removed again")
		*trouble = ""
		return
	case err == nil, ctx.Err() != nil:
		return
	case err.Error() == *trouble:
		level = slog.LevelDebug
	}
	*trouble = err.Error()
	t.log.Log(ctx, level, "cannot remove the pods of host tasks that were left behind", "error", err)
}

// Sweep removes the unattended pods of host tasks that cannot succeed any more. A pod is
// unattended if a killed EKCO created it and its step does not continue: the step is held, or
// its record was lost. Sweep keeps a program that runs. It keeps a pod that has succeeded while
// its action is open, since the step may still read the outcome. The journal has announced each
// removal by the start of the step.
func (t *Tasks) Sweep(ctx context.Context, open func(action string) bool) error {
	return t.sweepWhich(ctx, func(pod *corev1.Pod) (string, error) {
		if pod.Status.Phase == corev1.PodSucceeded && t.age(pod) > unclaimedTimeout && !open(pod.Annotations[AnnotationAction]) {
			return "it has ended, and no open action needs its outcome", nil
		}
		return t.whyLost(ctx, pod)
	})
}

// Quit is the sweep when EKCO ends. It also removes pods that do not run yet, since installers
// would see them fail, but not those that may run unreported; see [Task.LosesNode]. Steps remove
// the pods that they attend to.
//
// A pod whose action is not open here may belong to another EKCO that has started already.
func (t *Tasks) Quit(ctx context.Context, open func(action string) bool) error {
	return t.sweepWhich(ctx, func(pod *corev1.Pod) (string, error) {
		phase := pod.Status.Phase
		runs := phase == corev1.PodSucceeded || phase == corev1.PodRunning || taskOf(pod).LosesNode
		if !runs && open(pod.Annotations[AnnotationAction]) {
			return "EKCO ends, and the pod's program has not started", nil
		}
		return t.whyLost(ctx, pod)
	})
}

// sweepWhich removes the unattended pods if which returns a reason.
func (t *Tasks) sweepWhich(ctx context.Context, which func(*corev1.Pod) (why string, err error)) error {
	pods, err := t.pods(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range pods {
		pod := &pods[i]
		if !ours(&pod.ObjectMeta) || t.places.has(pod.Name) {
			continue
		}
		why, err := which(pod)
		if err == nil && why != "" {
			err = t.sweep(ctx, pod, why)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// ours reports whether EKCO created a pod. A user's copy of one has the same labels, but another
// name.
func ours(pod *metav1.ObjectMeta) bool {
	owner := Owner{Action: pod.Annotations[AnnotationAction], Step: pod.Annotations[AnnotationStep]}
	return owns(pod, owner) && pod.Name == Task{Name: pod.Labels[LabelTask]}.PodName(owner)
}

// whyLost returns why a pod cannot succeed any more, or "".
func (t *Tasks) whyLost(ctx context.Context, pod *corev1.Pod) (why string, err error) {
	task := taskOf(pod)
	seen, ended := task.judge(pod, t.age(pod))
	switch {
	case ended:
		return "", nil
	case seen.State == Lost:
		return seen.Why, nil
	case seen.State != Running || kube.PodReady(pod) || task.LosesNode:
		return "", nil
	}
	node, err := t.nodes.Node(ctx, task.Node)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "its node is no longer part of the cluster", nil
	case err != nil:
		return "", err
	}
	return NotReady(node), nil
}

// taskOf returns what a pod shows of its task.
func taskOf(pod *corev1.Pod) Task {
	task := Task{
		Name: pod.Labels[LabelTask], Node: pod.Spec.NodeName, Image: "of the pod", LosesNode: pod.Annotations[annotationLosesNode] == "true",
	}
	if start, err := time.ParseDuration(pod.Annotations[annotationStart]); err == nil {
		task.Start = journal.Duration(start)
	}
	if deadline := pod.Spec.ActiveDeadlineSeconds; deadline != nil {
		if limit := time.Duration(*deadline)*time.Second - task.start(); limit > 0 {
			task.Limit = journal.Duration(limit)
		}
	}
	return task
}

// sweep removes a pod.
func (t *Tasks) sweep(ctx context.Context, pod *corev1.Pod, why string) error {
	if err := t.delete(ctx, pod); err != nil {
		return kube.Lacking(err, "delete", "pods")
	}
	t.log.Info("removed the pod of a host task that was left behind",
		"pod", t.namespace+"/"+pod.Name, "node", pod.Spec.NodeName, "action", pod.Annotations[AnnotationAction], "reason", why)
	return nil
}
