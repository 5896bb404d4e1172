package config

// HostTasks are the settings of pods that work on a host.
type HostTasks struct {
	HostTaskImage     string
	HostTaskNamespace string
}

func (h *HostTasks) keys() []key {
	return []key{
		{
			name: "host_task_image", value: &h.HostTaskImage, byDefault: "replicated/ekco:latest",
			help: "image of pods that work on a host", built: true,
		},
		{
			name: "host_task_namespace", value: &h.HostTaskNamespace, byDefault: "kurl", built: true,
			help: "namespace of EKCO's own ConfigMap, and of pods that work on a host",
		},
	}
}
