package kubesim

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

var _ kube.API = (*Cluster)(nil)

// effect runs f, which changes the cluster, if the call gets through.
func (c *Cluster) effect(ctx context.Context, verb, name string, f func() (changed bool, err error)) error {
	return sim.Change(ctx, &c.APIServer, verb, name, func() (changed bool, err error) {
		c.change(func() { changed, err = f() })
		return changed, err
	})
}

// Node implements [kube.API].
func (c *Cluster) Node(ctx context.Context, name string) (kube.Node, error) {
	if err := sim.Reach(ctx, &c.APIServer, GetNodes); err != nil {
		return kube.Node{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	node, ok := c.nodes[name]
	if !ok {
		return kube.Node{}, fmt.Errorf("node %q: %w", name, kube.ErrNotFound)
	}
	return clone(*node), nil
}

// ListNodes implements [kube.API].
func (c *Cluster) ListNodes(ctx context.Context) ([]kube.Node, error) {
	if err := sim.Reach(ctx, &c.APIServer, ListNodes); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := make([]kube.Node, 0, len(c.nodes))
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		nodes = append(nodes, clone(*c.nodes[name]))
	}
	return nodes, nil
}

// DeleteNode implements [kube.API].
func (c *Cluster) DeleteNode(ctx context.Context, name, uid string) error {
	return c.effect(ctx, DeleteNodes, "delete-node "+name, func() (bool, error) {
		node, ok := c.nodes[name]
		switch {
		case !ok:
			return false, fmt.Errorf("node %q: %w", name, kube.ErrNotFound)
		case node.UID != uid:
			return false, fmt.Errorf("node %q has uid %s: %w", name, node.UID, kube.ErrOtherUID)
		}
		if len(node.Finalizers) > 0 {
			changed := !node.Deleting
			node.Deleting = true
			return changed, nil
		}
		delete(c.nodes, name)
		return true, nil
	})
}

// Pod implements [kube.API].
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (kube.Pod, error) {
	if err := sim.Reach(ctx, &c.APIServer, GetPods); err != nil {
		return kube.Pod{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pod, ok := c.pods[namespace+"/"+name]
	if !ok {
		return kube.Pod{}, fmt.Errorf("pod %s/%s: %w", namespace, name, kube.ErrNotFound)
	}
	return pod.Pod, nil
}

// ForceDeletePod implements [kube.API].
func (c *Cluster) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	key := namespace + "/" + name
	return c.effect(ctx, DeletePods, "delete-pod "+key, func() (bool, error) {
		pod, ok := c.pods[key]
		switch {
		case !ok:
			return false, fmt.Errorf("pod %s: %w", key, kube.ErrNotFound)
		case pod.UID != uid:
			return false, fmt.Errorf("pod %s has uid %s: %w", key, pod.UID, kube.ErrOtherUID)
		case pod.stuck:
			return false, nil
		}
		delete(c.pods, key)
		return true, nil
	})
}

// ClusterUID implements [kube.API].
func (c *Cluster) ClusterUID(ctx context.Context) (string, error) {
	if err := sim.Reach(ctx, &c.APIServer, GetNamespaces); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid, nil
}

// ReadMirror implements [kube.API].
func (c *Cluster) ReadMirror(ctx context.Context) ([]byte, string, error) {
	if err := sim.Reach(ctx, &c.APIServer, GetConfigMaps); err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mirror == nil {
		return nil, "", fmt.Errorf("the mirror: %w", kube.ErrNotFound)
	}
	return bytes.Clone(c.mirror), strconv.Itoa(c.version), nil
}

// WriteMirror implements [kube.API].
func (c *Cluster) WriteMirror(ctx context.Context, content []byte, version string) (string, error) {
	written := ""
	err := c.effect(ctx, UpdateConfigMaps, "write-mirror", func() (bool, error) {
		if len(content) > maxConfigMap {
			return false, fmt.Errorf("the mirror has %d bytes, a ConfigMap at most %d", len(content), maxConfigMap)
		}
		present := ""
		if c.mirror != nil {
			present = strconv.Itoa(c.version)
		}
		if version != present {
			return false, fmt.Errorf("the mirror is of version %q, not %q: %w", present, version, kube.ErrConflict)
		}
		c.mirror = bytes.Clone(content)
		c.version++
		written = strconv.Itoa(c.version)
		return true, nil
	})
	if err != nil {
		return "", err
	}
	return written, nil
}

// MirrorParts implements [kube.API].
func (c *Cluster) MirrorParts(ctx context.Context) (map[string][]byte, error) {
	if err := sim.Reach(ctx, &c.APIServer, ListConfigMaps); err != nil {
		return nil, err
	}
	return c.Parts(), nil
}

// WriteMirrorPart implements [kube.API].
func (c *Cluster) WriteMirrorPart(ctx context.Context, name string, content []byte) error {
	return c.effect(ctx, UpdateConfigMaps, "write-mirror-part", func() (bool, error) {
		if len(content) > maxConfigMap {
			return false, fmt.Errorf("part %s has %d bytes, a ConfigMap at most %d", name, len(content), maxConfigMap)
		}
		c.parts[name] = bytes.Clone(content)
		return true, nil
	})
}

// DeleteMirrorPart implements [kube.API].
func (c *Cluster) DeleteMirrorPart(ctx context.Context, name string) error {
	return c.effect(ctx, DeleteConfigMaps, "delete-mirror-part", func() (bool, error) {
		if _, there := c.parts[name]; !there {
			return false, fmt.Errorf("part %s of the mirror: %w", name, kube.ErrNotFound)
		}
		delete(c.parts, name)
		return true, nil
	})
}

// ServerTime implements [kube.API].
func (c *Cluster) ServerTime() (time.Time, bool) { return c.now(), true }

// RecordEvent implements [kube.API].
func (c *Cluster) RecordEvent(ctx context.Context, about journal.Subject, note kube.Note) error {
	if err := sim.Reach(ctx, &c.APIServer, CreateEvents); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, RecordedEvent{About: about, Note: note})
	return nil
}
