// Package hosttask runs a program on a node of the cluster, in a pod with access to only those
// parts of the host that it needs.
//
// [Task] describes the program. [Tasks] creates its pod, watches it and removes it; each call is idempotent. The name
// of the pod depends only on the task and its step, so the API server refuses a second pod. EKCO does not change a pod
// with that name that another client created.
//
// The program reports its outcome with [Say], and exits with 0 even if it failed: kURL's
// installers stop while a pod in namespace kurl has failed.
//
// Not guaranteed: a program may run more than once, and two runs may overlap. If the node is lost or the
// time limit is over, EKCO does not wait for the end of the program. Programs must be idempotent and
// tolerate a short overlap with another run.
package hosttask
