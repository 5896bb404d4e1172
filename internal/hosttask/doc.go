// Package hosttask runs a program once on a node of the cluster, in a pod that has what it
// needs of the host and nothing else.
//
// [Task] says what is run. [Tasks] makes its pod, looks how far it is and removes it; each
// call is one that bears being repeated. There is one name for a task, whoever makes its
// pod and however often it is tried, so that the API server itself keeps a second one from
// being made. A pod of that name that is none of EKCO's is left alone.
//
// Inside the pod the program says what came of it with [Say], and exits with 0 also when it
// failed: installers of kURL refuse to go on while a pod in namespace kurl has failed.
//
// Not guaranteed: that a program runs only once, nor that the last one has ended when the
// next begins. One whose node is lost, or whose time is over, is given up without waiting for
// its end. Programs must bear being run again, and beside themselves for a moment.
package hosttask
