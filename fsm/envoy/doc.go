// Package envoy is the machine for Envoy pods that stay unready. A thing is the Envoy of one DaemonSet on one node, and
// not a pod. So the machine detects when the pod that replaced an unready pod becomes unready too.
package envoy
