package hosttask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is the progress of a task.
type State string

// The states. A task in state Lost needs a new pod.
const (
	// Absent: the task has no pod.
	Absent State = "absent"
	// Foreign: a pod of another owner has the name of the task's pod.
	Foreign State = "foreign"
	// Starting: the pod exists but does not run yet.
	Starting State = "starting"
	// Running: the program runs.
	Running State = "running"
	// Reported: the program of a task with [Task.Trial] has reported its result and waits for the confirmation.
	Reported State = "reported"
	// Ended: the program has ended and reported success.
	Ended State = "ended"
	// Lost: the task cannot succeed any more.
	Lost State = "lost"
)

// TaskStatus is the state of a task at a check.
type TaskStatus struct {
	State State
	// Why is the reason for the state as text. It may be empty.
	Why string
	// Worse is set for a Lost task if its program reports that the change has damaged the node. It is also set for a task
	// with [Task.Trial] if the kubelet does not report the end of the program: the change may have cut off the node.
	Worse bool
	// Result is the result of a task in state Reported or Ended.
	Result json.RawMessage
}

// overduePeriod is how long after its deadline a pod may still be reported as running by the kubelet.
const overduePeriod = 15 * time.Second

// hopelessReasons are the reasons of a waiting container that will not disappear soon. If an image cannot be pulled,
// EKCO tries again later with a new pod.
var hopelessReasons = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"RegistryUnavailable", "SignatureValidationFailed",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
	"PreCreateHookError", "PreStartHookError", "PostStartHookError",
}

// stateOf returns the state of a pod. age is the time since EKCO first saw the pod. stateOf does not read the log, so
// if the program has ended, it returns Running and sets ended.
func (t Task) stateOf(pod *corev1.Pod, age time.Duration) (status TaskStatus, ended bool) {
	status = TaskStatus{State: Lost}
	waits := waitingState(pod)
	switch phase := pod.Status.Phase; {
	case phase == corev1.PodSucceeded:
		status.State = Running
		return status, true
	case phase == corev1.PodFailed:
		status.Why = "its pod failed: " + failureReason(pod)
	case pod.DeletionTimestamp != nil:
		status.Why = "its pod was deleted"
	case slices.Contains(hopelessReasons, waits.Reason):
		status.Why = fmt.Sprintf("its pod cannot start on node %s: %s: %s", t.Node, waits.Reason, cmp.Or(waits.Message, "image "+t.Image))
	case phase == corev1.PodRunning && age > t.Longest():
		status.Worse = t.Trial
		status.Why = fmt.Sprintf("its pod still runs, %s after its time was over: check the kubelet of node %s", (age - t.start() - t.limit()).Round(time.Second), t.Node)
	case phase == corev1.PodRunning:
		status.State = Running
	case age > t.start() && (!t.LosesNode || t.Trial || age > t.Longest()): // otherwise the program may run unreported
		status.Why = fmt.Sprintf("its pod has not started on node %s within %s%s", t.Node, t.start(), waitingReason(waits))
	default:
		status.State, status.Why = Starting, "its pod starts"+waitingReason(waits)
	}
	return status, false
}

// waitingReason returns a text with the kubelet's reason why a container waits, or "".
func waitingReason(waits corev1.ContainerStateWaiting) string {
	if waits.Reason == "" {
		return ""
	}
	return ": " + waits.Reason
}

func waitingState(pod *corev1.Pod) corev1.ContainerStateWaiting {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.State.Waiting != nil {
			return *status.State.Waiting
		}
	}
	return corev1.ContainerStateWaiting{}
}

// failureReason returns the kubelet's reason why a pod failed.
func failureReason(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return pod.Status.Reason + ": " + pod.Status.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("its program ended with %d (%s)", ended.ExitCode, cmp.Or(ended.Reason, "Error"))
		}
	}
	return cmp.Or(pod.Status.Message, "the kubelet reports no reason")
}
