// Package minio is the machine of MinIO, which kURL installs as a single one beside a
// highly available one without replicas: EKCO gives that its replicas once three nodes are
// ready, and keeps them spread.
package minio
