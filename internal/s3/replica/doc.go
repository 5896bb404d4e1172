// Package replica makes one object store, the target, equal to another store that is in use, the source. [Pass] makes a
// sync pass: it copies missing versions, changes versions that differ, and removes versions that the source does not
// have. [Compare] compares in the same way but changes nothing. Both compare the stores key by key, so they do not
// repeat earlier work of any process. An interrupted pass can be started again, and is faster from the [Position] that
// it had reached.
//
// Some settings of buckets are active, such as lifecycle, notification, a default retention and suspended versioning:
// they would disturb the copy. [Prepare] leaves them out, and [Settle] sets them at the end.
//
// # What is not copied
//
//   - The sizes of parts. An object larger than twice [Options.PartSize] is stored in parts of that size, and a
//     smaller object in one request. ETag and content are the same, but a client that requests part 2 of an object
//     gets other bytes.
//   - Checksums that a client stored with an object (x-amz-checksum-*). The ETag is the same.
//   - Incomplete uploads. The application must start them again.
//   - Objects that are encrypted with a key of the client (SSE-C). [Result.NotCarried] names them.
//   - The keys of objects that are encrypted with a key of the server: the target uses its own keys.
//   - The storage class, and the status of a replication between clusters.
//
// If EKCO is killed while it copies an object in parts, the next pass copies all parts of the object again, and the
// server later removes the old upload.
//
// # Memory
//
// Memory use does not grow with the number of objects. Listed objects that are not done take at most 8 MiB on each
// side, and the order of the objects takes another 8 MiB. The exception is an object with very many versions: all
// its versions must be in memory, in up to eight buckets at the same time. Each of these versions takes about 250
// bytes on each side, and again during the comparison. At most 2 MiB of an object's attributes are kept; the others
// are requested again, version by version. Contents are not kept. Each side reads pages of 1000 versions for each
// bucket in progress. A process that compared one object with 100,000 versions used 107 MiB of resident memory; more
// versions would be too many for the operator.
package replica
