// Package cephsim simulates, in memory, the part of a Ceph cluster that EKCO
// talks to, for crash and storm tests. A [Cluster] is a [ceph.API] with
// controls: lose hosts, the mgr and everything, hang, lose answers, and stop
// right before or after an effect.
//
// What it copies from the real one: a running OSD cannot be purged, a host with
// OSDs cannot be removed, what is unknown is ignored, ids are given again, and
// what the mgr answers is not answered without one. It moves no data: whether an
// OSD is safe to destroy is for the test to say.
//
// It starts no goroutine and waits only on contexts and timers, so it works
// inside a testing/synctest bubble.
package cephsim
