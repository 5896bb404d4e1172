// Package ceph is EKCO's view of a Ceph cluster: the narrow interface [API] of typed calls, and one
// implementation that runs the ceph program through a [Runner], usually in a pod of Rook. The subpackage
// cephsim simulates a cluster for crash tests.
//
// Answers are read from JSON, never from tables. Every argument is checked before it is used. There is no
// shell.
//
// # Queries share processes
//
// Most of the time of a ceph command is the start of Python. With an [InteractiveRunner], one process answers
// all queries of the same moment, and stays for the next ones. No answer is older than its query; with
// Options.MaxAge it may be that much older, but never older than the last change.
//
// In such a process there are no exit codes: only the answer shows how a command went. So a table lists the
// commands that may be sent, each with the keys that identify its answer. There must be as many whole answers
// as queries, in their order, and nothing on stderr. If anything else is written, or nothing comes, each query
// is repeated in a process of its own, where the exit code counts. That takes longer but is harmless: queries
// change nothing.
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
// connecting, then timeout(1) ends ceph inside the pod, then the context ends the exec. The order matters: the
// end of an exec does not end the process that it started.
package ceph
