package config

import "time"

// Envoy are the settings of Envoy's pods, and the namespaces of Envoy and Contour.
type Envoy struct {
	ContourNamespace          string
	ContourCertNamespace      string
	RestartFailedEnvoyPods    bool
	EnvoyPodsNotReadyDuration time.Duration
}

func (e *Envoy) keys() []key {
	return []key{
		{
			name: "contour_namespace", value: &e.ContourNamespace, byDefault: "projectcontour", check: namespace,
			help: "namespace of Contour", built: true,
		},
		{
			name: "contour_cert_namespace", value: &e.ContourCertNamespace, byDefault: "projectcontour", check: namespace,
			help: "old name of contour_namespace, used if that is not set", built: true,
		},
		{
			name: "restart_failed_envoy_pods", value: &e.RestartFailedEnvoyPods, byDefault: "true",
			help: "delete Envoy pods that stay unready", built: true,
		},
		{
			name: "envoy_pods_not_ready_duration", value: &e.EnvoyPodsNotReadyDuration, byDefault: "5m", check: positive,
			help: "how long an Envoy pod must be unready before it is deleted", built: true,
		},
	}
}

func (e *Envoy) settle(set map[string]bool) {
	if !set["contour_namespace"] && set["contour_cert_namespace"] {
		e.ContourNamespace = e.ContourCertNamespace
	}
}
