// Package minio is EKCO's view of the MinIO that kURL installs: the StatefulSet of the
// highly available one and its pods, whether there is a Deployment of the single one, the
// Service that clients use, and what its servers say of their health.
package minio
