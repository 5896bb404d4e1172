// Package ceph starts a real Ceph for tests: a monitor, a mgr, and OSDs that store their data in memory, on as many
// CRUSH hosts as a test needs. Everything listens on loopback and ends with the test.
//
// Commands of the tests themselves, such as [Cluster.Ceph], run in the code of the ceph program, but in a process that
// stays and keeps its connection (commands.py): the start of a ceph process takes half a second of CPU time. EKCO's
// commands are ceph processes ([Runner]).
//
// The programs are from Debian. [Start] installs them if they are missing (install.sh, which needs root).
//
// The tests in this package test internal/ceph. The tests of test/e2e name the hosts like nodes, and EKCO runs ceph in
// a pod there.
package ceph
