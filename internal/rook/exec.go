package rook

import (
	"context"
	"io"

	"github.com/replicatedhq/ekco/internal/podexec"
)

// Exec implements [API].
func (c *Client) Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	return c.exec.Exec(ctx, pod.toExecPod(), argv)
}

// Interact implements [API].
func (c *Client) Interact(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	return c.exec.Interact(ctx, pod.toExecPod(), argv, stdin, stdout, stderr)
}

// toExecPod converts the pod for package podexec.
func (p Pod) toExecPod() podexec.Pod {
	return podexec.Pod{Namespace: Namespace, Name: p.Name, Container: p.Container}
}
