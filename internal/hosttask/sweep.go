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

// sweepInterval is the interval of [Tasks.Sweep]. kURL's installers tolerate a pod that cannot succeed for 30 s.
const sweepInterval = 10 * time.Second

// unclaimedTimeout is the time for which Sweep keeps a pod of an ended program if this process has no open action for
// it: another EKCO process may need the outcome.
const unclaimedTimeout = 5 * time.Minute

// lastSweepTimeout is the timeout of the sweep when EKCO ends.
const lastSweepTimeout = 5 * time.Second

// SweepRegularly calls [Tasks.Sweep] at intervals until ctx ends, and then [Tasks.Quit]. The function may reports
// whether EKCO may remove pods now. The function open reports whether the action with an id is open.
func (t *Tasks) SweepRegularly(ctx context.Context, may func() bool, open func(action string) bool) {
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

// sweepIf calls sweep if may returns true. trouble is the error of the last sweep: sweepIf logs each error once as a
// warning.
func (t *Tasks) sweepIf(ctx context.Context, may func() bool, trouble *string, sweep func(context.Context) error) {
	if !may() {
		return
	}
	err := sweep(ctx)
	level := slog.LevelWarn
	switch {
	case err == nil && *trouble != "":
		t.log.Info("EKCO can again remove pods of host tasks that were left behind")
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

// Sweep removes the unattended pods of host tasks that cannot succeed any more. A pod is unattended if a killed EKCO
// created it and its step does not continue: the step is held, or its record was lost. Sweep keeps a pod whose program
// runs. It also keeps a succeeded pod while its action is open, since the step may still read the outcome. The journal
// needs no record of the removal, because the start of the step implies it.
func (t *Tasks) Sweep(ctx context.Context, open func(action string) bool) error {
	return t.sweepWhere(ctx, func(pod *corev1.Pod) (string, error) {
		if pod.Status.Phase == corev1.PodSucceeded && t.age(pod) > unclaimedTimeout && !open(pod.Annotations[AnnotationAction]) {
			return "it has ended, and no open action needs its outcome", nil
		}
		return t.whyLost(ctx, pod)
	})
}

// Quit is the last sweep when EKCO ends. It also removes pods that do not run yet, since installers would see them
// fail. It keeps pods whose program may run unreported; see [Task.LosesNode]. Each step removes its own pods itself.
//
// If the action of a pod is not open in this process, the pod may belong to another EKCO that has already started.
func (t *Tasks) Quit(ctx context.Context, open func(action string) bool) error {
	return t.sweepWhere(ctx, func(pod *corev1.Pod) (string, error) {
		phase := pod.Status.Phase
		runs := phase == corev1.PodSucceeded || phase == corev1.PodRunning || taskOf(pod).LosesNode
		if !runs && open(pod.Annotations[AnnotationAction]) {
			return "EKCO ends, and the pod's program has not started", nil
		}
		return t.whyLost(ctx, pod)
	})
}

// sweepWhere removes the unattended pods that which has a reason for.
func (t *Tasks) sweepWhere(ctx context.Context, which func(*corev1.Pod) (why string, err error)) error {
	pods, err := t.pods(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range pods {
		pod := &pods[i]
		if !isEKCOs(&pod.ObjectMeta) || t.places.has(pod.Name) {
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

// isEKCOs reports whether EKCO created a pod. A user's copy of the pod has the same labels, but another name.
func isEKCOs(pod *metav1.ObjectMeta) bool {
	owner := Owner{Action: pod.Annotations[AnnotationAction], Step: pod.Annotations[AnnotationStep]}
	return owns(pod, owner) && pod.Name == Task{Name: pod.Labels[LabelTask]}.PodName(owner)
}

// whyLost returns the reason why a pod cannot succeed any more, or "".
func (t *Tasks) whyLost(ctx context.Context, pod *corev1.Pod) (why string, err error) {
	task := taskOf(pod)
	status, ended := task.stateOf(pod, t.age(pod))
	switch {
	case ended:
		return "", nil
	case status.State == Lost:
		return status.Why, nil
	case status.State != Running || kube.PodReady(pod) || task.LosesNode:
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

// taskOf returns the fields of a task that its pod contains.
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

// sweep removes a pod and logs the reason.
func (t *Tasks) sweep(ctx context.Context, pod *corev1.Pod, why string) error {
	if err := t.delete(ctx, pod); err != nil {
		return kube.NamePermission(err, "delete", "pods")
	}
	t.log.Info("removed the pod of a host task that was left behind",
		"pod", t.namespace+"/"+pod.Name, "node", pod.Spec.NodeName, "action", pod.Annotations[AnnotationAction], "reason", why)
	return nil
}
