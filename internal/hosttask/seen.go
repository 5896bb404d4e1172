package hosttask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is how far a task is.
type State string

// The states. A task that is Lost needs a new pod.
const (
	// Absent: it has no pod.
	Absent State = "absent"
	// Foreign: a pod that is not this task's has its name.
	Foreign State = "foreign"
	// Starting: its pod is there and does not run yet.
	Starting State = "starting"
	// Running: the program runs.
	Running State = "running"
	// Reported: the program of a task with [Task.Trial] has reported its result, and waits to be confirmed.
	Reported State = "reported"
	// Ended: the program has ended and reported success.
	Ended State = "ended"
	// Lost: the task cannot succeed any more.
	Lost State = "lost"
)

// Seen is the state of a task at a check.
type Seen struct {
	State State
	// Why is the reason for the state, for people; it may be empty.
	Why string
	// Worse is set for a task that is Lost if its program says that the node is worse off, and for one with [Task.Trial]
	// whose kubelet does not report its end: the change may have cut off the node.
	Worse bool
	// Result is the result of a task that has Reported or Ended.
	Result json.RawMessage
}

// overdue is how long a pod may be reported as running after its deadline.
const overdue = 15 * time.Second

// hopeless are the reasons of a waiting container that do not pass soon. An image that cannot
// be pulled now is tried again later with a new pod.
var hopeless = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"RegistryUnavailable", "SignatureValidationFailed",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
	"PreCreateHookError", "PreStartHookError", "PostStartHookError",
}

// judge returns the state of a pod that was first seen age ago. If the program has ended, it
// returns Running and ended: the outcome is in the log, which judge does not read.
func (t Task) judge(pod *corev1.Pod, age time.Duration) (seen Seen, ended bool) {
	seen = Seen{State: Lost}
	waits := waiting(pod)
	switch phase := pod.Status.Phase; {
	case phase == corev1.PodSucceeded:
		seen.State = Running
		return seen, true
	case phase == corev1.PodFailed:
		seen.Why = "its pod failed: " + failure(pod)
	case pod.DeletionTimestamp != nil:
		seen.Why = "its pod was deleted"
	case slices.Contains(hopeless, waits.Reason):
		seen.Why = fmt.Sprintf("its pod cannot start on node %s: %s: %s", t.Node, waits.Reason, cmp.Or(waits.Message, "image "+t.Image))
	case phase == corev1.PodRunning && age > t.Longest():
		seen.Worse = t.Trial
		seen.Why = fmt.Sprintf("its pod still runs, %s after its time was over: check the kubelet of node %s", (age - t.start() - t.limit()).Round(time.Second), t.Node)
	case phase == corev1.PodRunning:
		seen.State = Running
	case age > t.start() && (!t.LosesNode || t.Trial || age > t.Longest()): // else it may run, and the kubelet cannot report it
		seen.Why = fmt.Sprintf("its pod has not started on node %s within %s%s", t.Node, t.start(), because(waits))
	default:
		seen.State, seen.Why = Starting, "its pod starts"+because(waits)
	}
	return seen, false
}

// because returns why a container waits, if the kubelet reports it.
func because(waits corev1.ContainerStateWaiting) string {
	if waits.Reason == "" {
		return ""
	}
	return ": " + waits.Reason
}

func waiting(pod *corev1.Pod) corev1.ContainerStateWaiting {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.State.Waiting != nil {
			return *status.State.Waiting
		}
	}
	return corev1.ContainerStateWaiting{}
}

// failure says why a pod failed, in the words of its kubelet.
func failure(pod *corev1.Pod) string {
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
