package nodereport

import (
	"encoding/json"
	"fmt"
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
	var of struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Status struct {
			Info struct {
				Kernel           string `json:"kernelVersion"`
				Kubelet          string `json:"kubeletVersion"`
				ContainerRuntime string `json:"containerRuntimeVersion"`
				OSImage          string `json:"osImage"`
			} `json:"nodeInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(object, &of); err != nil {
		return Node{}, "", fmt.Errorf("read a Node: %w", err)
	}
	info := of.Status.Info
	return Node{
		Kernel: short(info.Kernel), Kubelet: short(info.Kubelet), ContainerRuntime: short(info.ContainerRuntime), OSImage: short(info.OSImage),
	}, of.Metadata.UID, nil
}

// maxVersion is the maximum length of a version: it goes into the journal, and a kubelet can report anything.
const maxVersion = 100

func short(text string) string { return text[:min(len(text), maxVersion)] }
