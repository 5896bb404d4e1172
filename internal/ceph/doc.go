// Package ceph is EKCO's view of a Ceph cluster: the narrow interface [API] of
// typed calls, and one implementation that runs the ceph program through a
// [Runner], usually in a pod of Rook. The subpackage cephsim simulates a
// cluster for crash tests.
//
// Answers are read from JSON, never from tables. Everything that becomes an
// argument is checked first, and no shell is involved anywhere.
//
// # Questions share processes
//
// Most of what a ceph command takes is the start of Python. Where the runner is
// [Conversing], questions that are asked at the same moment are put to one process,
// which is kept for the next ones. Every question is put after it was asked, or, with
// Options.MaxAge, shortly before, since the last change.
//
// There, nothing but the answer tells how a command went. So what may be put is in a
// table, with the one key by which its answer is known; there must be as many whole
// answers as questions, in their order, and no word on stderr. Whatever else is
// written, and whenever nothing comes, the questions are asked again by a process
// each, where exit codes count. That costs time and can do no harm: a question may
// be asked twice.
//
// # Which commands need a mgr
//
// The monitors answer some commands themselves and hand others to the active
// mgr. Without one, commands of the second kind never answer, whatever
// --connect-timeout says:
//
//	monitors: version, status, health, osd tree, osd dump, osd down, osd out, osd rm,
//	          osd crush rm, auth rm, mgr dump, quorum_status
//	mgr:      osd purge, osd safe-to-destroy, osd df, pg stat
//
// Without a quorum of monitors nothing is answered. So every call here ends
// after a time of its own, three times over: ceph gives up connecting, then
// timeout(1) ends ceph inside of the pod, then the context ends the exec. The
// order matters: ending an exec does not end the process that it started.
package ceph
