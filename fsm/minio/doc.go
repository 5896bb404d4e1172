// Package minio is the machine of MinIO. kURL installs a standalone MinIO, and a highly available one without replicas:
// EKCO adds the replicas once three nodes are ready, keeps them spread, and migrates the data.
package minio
