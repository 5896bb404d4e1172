// Package s3 speaks to object stores of the kind that MinIO is: objects with
// versions, buckets with settings, health pages, and the administrator's API for
// what S3 does not know (version, room, users and policies).
//
// [Source] and [Target] are what a copy needs of its two sides; [Client] is both,
// on minio-go. How one store is made equal to another is in package replica.
//
// Credentials are in no error and in no String of this package.
package s3
