// Package miniosim simulates MinIO: the objects in Kubernetes, what the controllers of Kubernetes
// do with them, and the health that the servers report.
package miniosim
