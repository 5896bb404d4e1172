// Package miniosim is a simulated MinIO: simulated objects of the Kubernetes API, what
// Kubernetes makes of them, and what MinIO's servers say of their health.
package miniosim
