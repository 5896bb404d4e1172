package minio

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Said is what one replica answered.
type Said struct {
	Pod string
	Answer
	// Err says that there is no answer.
	Err error
}

// Ask implements [API].
func (c *Client) Ask(ctx context.Context, question Question) []Said {
	seen, err := c.look(ctx)
	if err != nil {
		return []Said{{Pod: App, Err: err}}
	}
	var said []Said
	var addresses []string
	for _, pod := range seen.pods {
		switch {
		case pod.runs():
			said, addresses = append(said, Said{Pod: pod.Metadata.Name}), append(addresses, pod.Status.PodIP)
		case pod.starts():
			said, addresses = append(said, Said{Pod: pod.Metadata.Name, Err: errNoAddress}), append(addresses, "")
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
	read, exists, err := found[object](ctx, c, ClaimRef(c.namespace, pod))
	return Claim{UID: read.Metadata.UID, Ends: read.Metadata.DeletionTimestamp != ""}, exists, err
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
