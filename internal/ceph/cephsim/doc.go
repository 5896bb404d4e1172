// Package cephsim simulates in memory the part of a Ceph cluster that EKCO uses, for crash and storm tests. A
// [Cluster] is a [ceph.API] with controls: lose hosts, the mgr or everything, hang, lose answers, and stop
// right before or after an effect.
//
// It copies these properties of Ceph: a running OSD cannot be purged, a host with OSDs cannot be removed,
// unknown ids are ignored, ids are reused, and without a mgr its commands are not answered. It moves no data:
// the test sets which OSDs are safe to destroy.
//
// It starts no goroutine and waits only on contexts and timers, so it works inside a testing/synctest bubble.
package cephsim
