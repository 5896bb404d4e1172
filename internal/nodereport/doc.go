// Package nodereport reads on a host what administrators check on every node before they work on it: kernel,
// clock, free disk space, certificates and mounted Ceph volumes.
//
// It reads the host's files below a prefix, as in a pod that mounts [Paths], and changes nothing. It reads only the
// public part of certificates. If it cannot read something, the report has the reason, and everything else.
package nodereport
