package hosttasksim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/hosttask"
)

// after simulates the node's reaction to a created or deleted pod.
func (c *Cluster) after(effect string) {
	verb, name, _ := strings.Cut(effect, " pods "+Namespace+"/")
	defer c.notifyWatches(name)
	switch verb {
	case "create":
		if pod, is := c.pod(name); is && pod.Status.Phase == "" {
			c.accept(pod)
		}
	case "delete":
		if _, is := c.pod(name); !is {
			c.ended(name)
			c.good(name)
			c.remove(name)
		}
	}
}

// confirmed waits until the pod is confirmed, for at most half the pod's time limit. It returns an error if the pod is
// not confirmed. Like a kubelet, it ends the program when its pod is removed.
func (c *Cluster) confirmed(pod corev1.Pod, answers func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second/2)
	defer cancel()
	c.mu.Lock()
	c.removed[pod.Name] = cancel
	c.mu.Unlock()
	err := errors.New("no API server answers it")
	for err != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it was not confirmed: %w", err)
		case <-time.After(time.Second):
		}
		if now, _ := c.pod(pod.Name); answers() {
			err = hosttask.CheckConfirmed(now.Annotations)
		}
	}
	return nil
}

// remove ends a program that waits for the confirmation.
func (c *Cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.removed[name]; cancel != nil {
		cancel()
		delete(c.removed, name)
	}
}

func (c *Cluster) pod(name string) (pod corev1.Pod, is bool) {
	content := c.Object(podRef(name))
	if content == nil {
		return corev1.Pod{}, false
	}
	raw, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(raw, &pod)
	}
	if err != nil {
		panic(err)
	}
	return pod, true
}

// accept simulates a new pod on its node.
func (c *Cluster) accept(pod corev1.Pod) {
	name := pod.Name
	c.mu.Lock()
	program := Program{}
	if n := c.nodes[pod.Spec.NodeName]; n != nil {
		program = n.program
	}
	c.made[pod.Spec.NodeName]++
	c.under[name] = true
	c.logs[name] = ""
	c.mu.Unlock()
	c.count()
	if program.Start == 0 {
		program.Start = time.Second
	}
	if program.Run == 0 {
		program.Run = 3 * time.Second
	}
	c.status(pod, "Pending", nil)
	time.AfterFunc(program.Start, func() { c.start(pod, program) })
	// A kubelet measures the deadline from the start of the pod, not of the program.
	time.AfterFunc(time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second, func() { c.fails(pod, "DeadlineExceeded") })
}

// count counts the unfinished pods in the API. It checks each pod, because the entry in under is removed only after the
// pod has ended.
func (c *Cluster) count() {
	c.mu.Lock()
	names := slices.Collect(maps.Keys(c.under))
	c.mu.Unlock()
	n := 0
	for _, name := range names {
		if pod, is := c.pod(name); is && pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			n++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, n)
}

func (c *Cluster) start(pod corev1.Pod, program Program) {
	if len(pod.Spec.InitContainers) > 0 && program.Then != nil {
		if why := program.Then(pod.Spec.Containers[0].Image); why != nil {
			program.Waits, program.Message = "ErrImagePull", why.Error()
		}
	}
	if program.Waits != "" {
		if c.status(pod, "Pending", waiting(program.Waits, cmp.Or(program.Message, "by the simulation"))) {
			c.bad(pod.Name)
		}
		return
	}
	if !c.status(pod, "Running", running) {
		return
	}
	c.says(pod, program.Lines...)
	if !program.Hangs {
		time.AfterFunc(program.Run, func() { c.end(pod, program) })
	}
}

func (c *Cluster) end(pod corev1.Pod, program Program) {
	if program.Dies {
		c.fails(pod, "")
		return
	}
	if len(pod.Spec.InitContainers) == 0 && !program.Silent && c.isUnfinished(pod) {
		c.says(pod, c.outcome(pod, program))
	}
	c.succeeds(pod)
}

// succeeds reports the program's success when its node is reachable.
func (c *Cluster) succeeds(pod corev1.Pod) {
	if c.isCutOff(pod) {
		time.AfterFunc(time.Second, func() { c.succeeds(pod) })
	} else if c.status(pod, "Succeeded", nil) {
		c.ended(pod.Name)
	}
}

func (c *Cluster) fails(pod corev1.Pod, reason string) {
	failed := func(status map[string]any) { status["reason"], status["message"] = reason, "by the simulation" }
	if c.status(pod, "Failed", failed) {
		c.ended(pod.Name)
		c.bad(pod.Name)
	}
}

// Kill ends the pods of a node like an eviction.
func (c *Cluster) Kill(node string) {
	for _, pod := range c.on(node) {
		c.fails(pod, "Evicted")
	}
}

func (c *Cluster) on(node string) (pods []corev1.Pod) {
	c.mu.Lock()
	var names []string
	for name := range c.under {
		names = append(names, name)
	}
	c.mu.Unlock()
	for _, name := range names {
		if pod, is := c.pod(name); is && pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// unready simulates the node controller: it marks the pods of a lost node as not ready.
func (c *Cluster) unready(node string) {
	for _, pod := range c.on(node) {
		c.edit(pod, func(status map[string]any) { status["conditions"] = []any{condition("False")} })
		c.bad(pod.Name)
	}
}

func condition(ready string) map[string]any { return map[string]any{"type": "Ready", "status": ready} }

func running(status map[string]any) { status["conditions"] = []any{condition("True")} }

func waiting(reason, message string) func(map[string]any) {
	return func(status map[string]any) {
		status["containerStatuses"] = []any{map[string]any{"name": "task", "state": map[string]any{
			"waiting": map[string]any{"reason": reason, "message": message},
		}}}
	}
}

// outcome returns the program's last output.
func (c *Cluster) outcome(pod corev1.Pod, p Program) string {
	var result any = map[string]string{"node": pod.Spec.NodeName}
	var err error
	args := pod.Spec.Containers[0].Args
	switch {
	case p.Failed != "":
		err = errors.New(p.Failed)
	case p.Runs != nil:
		result, err = p.Runs(args)
	}
	if err == nil && p.Trial != nil {
		err = p.Trial(args, func(answers func() bool) error {
			c.says(pod, line(func(out io.Writer) error { return hosttask.SayAndWait(out, result) }))
			return c.confirmed(pod, answers)
		})
	}
	return line(func(out io.Writer) error { return hosttask.Say(out, result, err) })
}

// line returns the output of say, without the line break.
func line(say func(io.Writer) error) string {
	var line strings.Builder
	if err := say(&line); err != nil {
		panic(err)
	}
	return strings.TrimRight(line.String(), "\n")
}

// isCutOff reports whether the pod exists and its node is not reachable.
func (c *Cluster) isCutOff(pod corev1.Pod) bool {
	now, is := c.pod(pod.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[pod.Spec.NodeName]
	return is && now.UID == pod.UID && n != nil && n.lost
}

// isReachable reports whether the pod exists and its node is reachable.
func (c *Cluster) isReachable(pod corev1.Pod) bool {
	now, is := c.pod(pod.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[pod.Spec.NodeName]
	return is && now.UID == pod.UID && n != nil && !n.lost
}

// isUnfinished reports whether the pod exists and has not ended.
func (c *Cluster) isUnfinished(pod corev1.Pod) bool {
	var phase any
	c.Look(podRef(pod.Name), func(now map[string]any) {
		status, _ := now["status"].(map[string]any)
		phase = status["phase"]
	})
	return c.isReachable(pod) && phase != "Succeeded" && phase != "Failed"
}

// status sets the status of a pod if the pod exists, has not ended and its node is reachable.
func (c *Cluster) status(pod corev1.Pod, phase string, more func(status map[string]any)) bool {
	if !c.isUnfinished(pod) {
		return false
	}
	c.edit(pod, func(status map[string]any) {
		clear(status)
		status["phase"] = phase
		if more != nil {
			more(status)
		}
	})
	return true
}

func (c *Cluster) edit(pod corev1.Pod, change func(status map[string]any)) {
	c.Edit(podRef(pod.Name), func(object map[string]any) {
		status, _ := object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		change(status)
		object["status"] = status
	})
	c.notifyWatches(pod.Name)
}

func (c *Cluster) says(pod corev1.Pod, lines ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range lines {
		c.logs[pod.Name] += line + "\n"
	}
}

func (c *Cluster) ended(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, name)
}

// bad records the time from which a pod can no longer succeed, unless the pod has been removed.
func (c *Cluster) bad(name string) {
	c.mu.Lock()
	if c.badSince[name].IsZero() {
		c.badSince[name] = time.Now()
	}
	c.mu.Unlock()
	if _, is := c.pod(name); !is {
		c.good(name)
	}
}

func (c *Cluster) good(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, was := c.badSince[name]; was {
		c.badFor = max(c.badFor, time.Since(since))
		delete(c.badSince, name)
	}
}
