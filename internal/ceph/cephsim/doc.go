// Package cephsim simulates in memory the part of a Ceph cluster that EKCO uses. A [Cluster] is a [ceph.API] with
// controls for tests: they can lose hosts, the mgr or everything, make calls hang, lose answers, and stop EKCO right
// before or after an effect.
//
// It copies these properties of Ceph: a running OSD cannot be purged, a host with OSDs cannot be removed,
// Ceph ignores unknown ids and reuses ids, and without a mgr it does not answer the mgr's commands. The simulation
// moves no data: the test sets which OSDs are safe to destroy.
//
// It starts no goroutine and waits only on contexts and timers, so it works inside a testing/synctest bubble.
package cephsim
