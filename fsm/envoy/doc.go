// Package envoy is the machine of Envoy pods that stay unready. A thing is the Envoy of one DaemonSet on one node, not
// a pod: so the machine knows when a replaced pod's successor becomes unready as well.
package envoy
