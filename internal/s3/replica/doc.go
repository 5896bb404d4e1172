// Package replica makes one object store equal to another that is in use. [Pass] makes a sync pass:
// it copies what is missing, changes what differs and removes what is gone. [Compare] compares in
// the same way and changes nothing. Both go through the keys of both stores in order, so they find
// what was done before, by this process or another, and do not repeat it. An interrupted pass can
// simply be started again, and is faster from the [Position] that it had reached.
//
// Some settings of buckets are active: lifecycle, notification, a default retention and suspended
// versioning would change the copy before it is complete. [Prepare] leaves them out and [Settle]
// sets them at the end.
//
// # What is not copied
//
//   - The sizes of parts. An object larger than twice the part size is stored in parts of that
//     size, a smaller one in one request, whatever parts it had. ETag and content are the same, but
//     a client that requests part 2 of an object gets other bytes.
//   - Checksums that a client stored with an object (x-amz-checksum-*). Clients do not get them from
//     the copy; the ETag is the same.
//   - Incomplete uploads: the application has to start them again.
//   - Content that is encrypted with a key of the client (SSE-C). [Result] names it.
//   - The keys of objects that are encrypted with a key of the server: the target uses its own.
//   - The storage class, and the status of a replication between clusters.
//
// A kill during the copy of an object in parts loses all its parts: the next pass starts the object
// again, and the server later removes the old upload.
//
// # Memory
//
// Memory use does not grow with the number of objects. Listed objects that are not done yet take 8
// MiB on each side, or as much as the versions of a single object in each of eight buckets, and the
// order in which a pass does them takes another 8 MiB; a page of 1000 versions is read at a time for
// each side and bucket in progress. Contents are not kept. Each version of one object with very many
// versions takes about 250 bytes on each side, and as much again during its comparison. 2 MiB of
// attributes are kept; the rest is requested again, version by version. Comparing 100,000 versions of
// one object took 107 MiB of resident memory in all, in a process that does nothing else. More would
// be too many for the operator.
package replica
