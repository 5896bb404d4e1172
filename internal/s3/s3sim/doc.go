// Package s3sim simulates, in memory, an object store as EKCO sees it, for crash
// and storm tests. A [Store] is an [s3.Target] with controls: applications write
// and delete, an answer is lost, the store goes away, and a test stops right before
// or after an effect.
//
// It keeps versions, delete markers and the null version as MinIO does. It knows
// nothing of users, and does not act on settings other than versioning.
package s3sim
