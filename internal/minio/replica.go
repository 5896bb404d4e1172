package minio

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// ReplicaAnswer is the answer of one replica.
type ReplicaAnswer struct {
	Pod string
	Answer
	// Err is the reason why there is no answer.
	Err error
}

// Running is a running replica.
type Running struct {
	Name, Address string
	// Life changes each time the server starts. After a restart, its drive may lack objects that were written
	// during the outage.
	Life string
}

// Running implements [API].
func (c *Client) Running(ctx context.Context) ([]Running, error) {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var running []Running
	for _, pod := range seen.pods {
		if pod.runs() {
			running = append(running, Running{Name: pod.Name, Address: pod.Status.PodIP, Life: pod.life()})
		}
	}
	return running, nil
}

// life returns the Life of [Running].
func (p pod) life() string {
	starts := 0
	for _, container := range p.Status.ContainerStatuses {
		starts += int(container.RestartCount)
	}
	return fmt.Sprint(p.UID, "/", starts)
}

// Ask implements [API].
func (c *Client) Ask(ctx context.Context, question Question) []ReplicaAnswer {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return []ReplicaAnswer{{Pod: App, Err: err}}
	}
	return c.ask(ctx, seen.pods, question)
}

// Observe implements [API].
func (c *Client) Observe(ctx context.Context) (journal.MinioFacts, error) {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return journal.MinioFacts{}, err
	}
	facts := seen.facts
	facts.Health = health(c.ask(ctx, seen.pods, Now), c.ask(ctx, seen.pods, WithoutYou))
	return facts, nil
}

// health summarizes the answers to [Now] (now) and to [WithoutYou] (spared).
func health(now, spared []ReplicaAnswer) journal.MinioHealth {
	anyAnswer := func(said []ReplicaAnswer, what func(Answer) bool) bool {
		return slices.ContainsFunc(said, func(one ReplicaAnswer) bool { return one.Err == nil && what(one.Answer) })
	}
	switch {
	case len(now) == 0:
		return ""
	case !anyAnswer(now, func(Answer) bool { return true }):
		return journal.MinioSilent
	case !anyAnswer(now, func(a Answer) bool { return a.Yes }):
		return journal.MinioUnhealthy
	case anyAnswer(spared, func(a Answer) bool { return a.Healing > 0 }):
		return journal.MinioRestores
	}
	return journal.MinioHealthy
}

// ask asks all running pods at the same time.
func (c *Client) ask(ctx context.Context, pods []pod, question Question) []ReplicaAnswer {
	var said []ReplicaAnswer
	var addresses []string
	for _, pod := range pods {
		switch {
		case pod.runs():
			said, addresses = append(said, ReplicaAnswer{Pod: pod.Name}), append(addresses, pod.Status.PodIP)
		case pod.starts():
			said, addresses = append(said, ReplicaAnswer{Pod: pod.Name, Err: errNoAddress}), append(addresses, "")
		}
	}
	var all parallel.Group
	for i, address := range addresses {
		if address == "" {
			continue
		}
		all.Go(func() { said[i].Answer, said[i].Err = c.servers.Health(ctx, address, question) })
	}
	all.Wait().Raise()
	return said
}

// Claim implements [API].
func (c *Client) Claim(ctx context.Context, pod string) (Claim, bool, error) {
	return c.claim(ctx, ClaimRef(c.namespace, pod))
}

func (c *Client) claim(ctx context.Context, ref kube.Ref) (Claim, bool, error) {
	read, exists, err := kube.Find[metav1.PartialObjectMetadata](ctx, c.objects, ref)
	return Claim{UID: string(read.UID), Ends: read.DeletionTimestamp != nil}, exists, err
}

// DeleteClaim implements [API].
func (c *Client) DeleteClaim(ctx context.Context, pod, uid string) error {
	if err := c.objects.DeleteObject(ctx, ClaimRef(c.namespace, pod), uid); err != nil {
		return fmt.Errorf("delete the claim of replica %s: %w", pod, err)
	}
	return nil
}

// DeletePod implements [API].
func (c *Client) DeletePod(ctx context.Context, pod, uid string) error {
	if err := c.objects.DeleteObject(ctx, namedPodRef(c.namespace, pod), uid); err != nil {
		return fmt.Errorf("delete replica %s: %w", pod, err)
	}
	return nil
}
