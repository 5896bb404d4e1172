// Package nodereport reads on a host what an administrator asks of every node before
// something is done to it: kernel, clock, free disk, certificates and mounted Ceph volumes.
//
// It reads the host's files below a prefix, as a pod has them that mounts [Paths], and
// changes nothing. Of certificates it reads the public part. What cannot be had is said, with
// the reason, beside what can.
package nodereport
