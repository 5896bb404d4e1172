// Package durable writes files of a host so that neither a full disk nor a crash of the host leaves half of one. It
// also reads files that other programs may have written.
//
// [Replace], [Edit] and [Prepare] replace the old file by a new one in one step. [Overwrite] keeps the file itself, for
// a file that is mounted into a container; its comment has the disadvantages. All of them first write the content to a
// temporary file, whose name begins with a dot: the kubelet takes every other file in its manifest directory for a
// manifest.
package durable
