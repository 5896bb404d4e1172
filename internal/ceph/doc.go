// Package ceph reads and changes a Ceph cluster. The interface [API] has only the calls that EKCO needs. [Client]
// implements it: it runs the ceph program through a [Runner], usually in a pod of Rook. The subpackage cephsim
// simulates a cluster for crash tests.
//
// The client reads JSON answers, never tables. It checks every argument before it runs a command. It uses no shell.
//
// # Queries share processes
//
// A ceph command spends most of its time on starting Python. With an [InteractiveRunner], one process answers
// all queries of the same moment, and waits for the next ones. No answer is older than its query, unless
// Options.MaxAge allows it. An answer is never older than the last change.
//
// A shared process gives no exit codes: only the answer shows whether a command succeeded. So a table lists the
// commands that may be sent, each with the keys that identify its answer. The process must write one whole answer
// for each query, in the order of the queries, and nothing on stderr. Otherwise the client repeats each query in a
// separate process, which has an exit code. That takes longer but is harmless: queries change nothing.
//
// # Which commands need a mgr
//
// The monitors answer some commands themselves and hand others to the active mgr. Without a mgr, commands of
// the second kind never answer, whatever --connect-timeout is:
//
//	monitors: version, status, health, osd tree, osd dump, osd down, osd out, osd rm,
//	          osd crush rm, auth rm, mgr dump, quorum_status
//	mgr:      osd purge, osd safe-to-destroy, osd df, pg stat
//
// Without a quorum of monitors, no command is answered. So every call has three timeouts: first ceph gives up
// connecting, then timeout(1) ends ceph inside the pod, then the context ends the exec. The exec's timeout must be
// last, because the end of an exec does not end the program in the pod.
package ceph
