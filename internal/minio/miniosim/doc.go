// Package miniosim simulates MinIO: its objects in Kubernetes, the controllers of Kubernetes that act on them, and the
// health that the servers report.
package miniosim
