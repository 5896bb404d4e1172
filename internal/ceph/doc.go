// Package ceph is EKCO's view of a Ceph cluster: the narrow interface [API] of
// typed calls, and one implementation that runs the ceph program through a
// [Runner], usually in a pod of Rook. The subpackage cephsim simulates a
// cluster for crash tests.
//
// Answers are read from JSON, never from tables. Everything that becomes an
// argument is checked first, and no shell is involved anywhere.
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
