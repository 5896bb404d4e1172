// Package envoy is the machine for Envoy pods that stay unready. A thing is not a pod, but the Envoy of one DaemonSet
// on one node. So the machine detects when the replacement of an unready pod becomes unready too.
package envoy
