package nodereport

import (
	"encoding/json"
	"fmt"
)

// Node is what a Node object says of its machine. It is told also of one on which nothing
// can be run.
type Node struct {
	Kernel           string `json:"kernel,omitempty"`
	Kubelet          string `json:"kubelet,omitempty"`
	ContainerRuntime string `json:"container_runtime,omitempty"`
	OSImage          string `json:"os_image,omitempty"`
}

// NodeOf reads a Node object, of which it also returns the UID.
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

// maxVersion bounds what is kept of a version: it goes into the journal, and a kubelet can
// say anything.
const maxVersion = 100

func short(text string) string { return text[:min(len(text), maxVersion)] }
