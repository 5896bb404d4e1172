package config

import "time"

// Envoy are the settings of Envoy's pods.
type Envoy struct {
	RestartFailedEnvoyPods    bool
	EnvoyPodsNotReadyDuration time.Duration
}

func (e *Envoy) keys() []key {
	return []key{
		{
			name: "restart_failed_envoy_pods", value: &e.RestartFailedEnvoyPods, byDefault: "true", does: "delete Envoy pods that stay unready",
			help: "delete Envoy pods that stay unready",
		},
		{
			name: "envoy_pods_not_ready_duration", value: &e.EnvoyPodsNotReadyDuration, byDefault: "5m", check: positive,
			help: "how long an Envoy pod must be unready before it is deleted",
		},
	}
}
