// Package minio reads and changes the MinIO that kURL installs: the StatefulSet of the highly
// available MinIO and its pods, the Deployment of standalone MinIO, the Service that clients use,
// and the health that the servers report.
package minio
