// Package durable writes files of a host so that neither a full disk nor a crash of the host
// leaves half of one; and reads those that others may have put there.
//
// [Replace], [Edit] and [Prepare] put a new file into the place of the old one, at once. [Overwrite]
// keeps the file itself, for those that are mounted into a container by themselves, and says what
// that costs. All of them write the content beside the file first, under a name with a dot in front: the kubelet takes every other
// file in the directory of its manifests for one.
package durable
