// Package ceph starts a real Ceph for tests: a monitor, a mgr, and OSDs that
// keep their data in memory, on as many CRUSH hosts as a test wants. Everything
// listens on loopback and ends with the test.
//
// The programs are Debian's; [Start] has them installed when they are missing
// (install.sh, which needs root).
//
// The tests here put internal/ceph before it. The tests of test/e2e give the
// hosts the names of nodes, and have EKCO reach ceph through a pod.
package ceph
