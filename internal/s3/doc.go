// Package s3 is a client of MinIO: objects with versions, settings of buckets, health checks, and
// the administrator's API for what S3 does not have (version, free space, users and policies).
//
// [Source] and [Target] are the two sides of a copy. [Client] implements both, on minio-go. Package
// replica makes one store equal to another.
//
// No error and no String of this package contains credentials.
package s3
