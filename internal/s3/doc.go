// Package s3 is a client of MinIO. It handles objects with versions, settings of buckets and health
// checks. It uses MinIO's administrator API for the version, the free space, users and policies.
//
// [Source] and [Target] are the two sides of a copy. [Client] implements both, on minio-go. Package
// replica makes one store equal to another.
//
// No error and no String of this package contains credentials.
package s3
