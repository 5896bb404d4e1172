package config

import "time"

// LoadBalancer are the settings of the load balancer in front of the API servers.
type LoadBalancer struct {
	EnableInternalLoadBalancer       bool
	InternalLoadBalancerHAProxyImage string
	InternalLoadBalancerTrial        time.Duration
	InternalLoadBalancerPort         int
}

// trialDuration checks the duration of a trial. The maximum leaves time to restore HAProxy before Kubernetes evicts the
// pods of its node, 340 s after the kubelet last reached an API server. A trial shorter than the minimum would end
// before the kubelet has started HAProxy.
func trialDuration(value any) string {
	if d, ok := value.(*time.Duration); ok && (*d < 10*time.Second || *d > 3*time.Minute) {
		return "a duration from 10s to 3m"
	}
	return ""
}

func (l *LoadBalancer) keys() []key {
	return []key{
		{
			name: "enable_internal_load_balancer", value: &l.EnableInternalLoadBalancer, built: true,
			help: "keep HAProxy up to date on every node, in front of the API servers",
		},
		{
			name: "internal_load_balancer_haproxy_image", value: &l.InternalLoadBalancerHAProxyImage, byDefault: "haproxy:lts-alpine",
			help: "image of HAProxy", built: true,
		},
		{
			name: "internal_load_balancer_trial", value: &l.InternalLoadBalancerTrial, byDefault: "1m30s", check: trialDuration, built: true,
			help: "how long HAProxy may take to work with new files, from 10s to 3m, before the former ones are restored",
		},
		{
			name: "internal_load_balancer_port", value: &l.InternalLoadBalancerPort, byDefault: "6444", check: port,
			help: "port of the internal load balancer; ignored",
		},
	}
}
