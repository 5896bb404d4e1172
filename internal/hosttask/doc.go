// Package hosttask runs a program on a node of the cluster, in a pod with access to only those
// parts of the host that it needs.
//
// [Task] says what to run. [Tasks] creates its pod, watches it and removes it; each call is
// idempotent. The name of the pod depends only on the task and its step, so the API server
// refuses a second one. EKCO does not touch a pod of that name that it did not create.
//
// The program reports its outcome with [Say], and exits with 0 even if it failed: kURL's
// installers stop while a pod in namespace kurl has failed.
//
// Not guaranteed: that a program runs only once, or that it has ended before its next run
// begins. A program whose node is lost, or whose time is over, is given up without waiting for
// its end. Programs must be idempotent and tolerate a short overlap with another run.
package hosttask
