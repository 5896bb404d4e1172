// Package s3sim simulates an object store in memory, for crash and storm tests. A [Store] is an
// [s3.Target] with controls: applications write and delete, an answer is lost, the store goes away,
// and a test stops right before or after an effect.
//
// It keeps versions, delete markers and the null version as MinIO does. It has no users, and of the
// settings only versioning has an effect.
package s3sim
