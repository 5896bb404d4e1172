// Package minio is the machine for MinIO. kURL installs a standalone MinIO, and a highly available MinIO without
// replicas. EKCO adds the replicas once three nodes are ready, spreads them over the nodes, and migrates the data.
package minio
