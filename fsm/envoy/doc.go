// Package envoy is the machine of Envoy's pods that stay unready. A thing is the Envoy of
// one DaemonSet on one node, not a pod: when its pod is replaced and the next one hangs as
// well, the machine knows that it does.
package envoy
