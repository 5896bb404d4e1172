package nodereport

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Node is what a Node object has about its machine. It is reported even if nothing can run on the node.
type Node struct {
	Kernel           string `json:"kernel,omitempty"`
	Kubelet          string `json:"kubelet,omitempty"`
	ContainerRuntime string `json:"container_runtime,omitempty"`
	OSImage          string `json:"os_image,omitempty"`
}

// NodeOf reads a Node object, and also returns its UID.
func NodeOf(object json.RawMessage) (node Node, uid string, err error) {
	var of corev1.Node
	if err := json.Unmarshal(object, &of); err != nil {
		return Node{}, "", fmt.Errorf("read a Node: %w", err)
	}
	info := of.Status.NodeInfo
	return Node{
		Kernel: short(info.KernelVersion), Kubelet: short(info.KubeletVersion), ContainerRuntime: short(info.ContainerRuntimeVersion), OSImage: short(info.OSImage),
	}, string(of.UID), nil
}

// maxVersion is the maximum length of a version: it goes into the journal, and a kubelet can report anything.
const maxVersion = 100

func short(text string) string { return text[:min(len(text), maxVersion)] }
