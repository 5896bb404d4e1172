// Package replica makes one object store equal to another while the other is in
// use: [Pass] copies what is missing, changes what differs and removes what is gone;
// [Compare] does the same and changes nothing. Both go through the keys of both
// stores side by side, so that what was done before, by this process or another, is
// found and not done again: a pass that was interrupted is simply made anew, and
// goes faster with the [Position] it had reached.
//
// Settings of buckets that act by themselves (lifecycle, notification, a default
// retention, suspended versioning) would spoil a copy under way. [Prepare] leaves
// them out and [Settle] sets them at the end.
//
// # What is not carried
//
//   - The sizes of parts. An object larger than twice the part size is stored in
//     parts of ours, a smaller one at once, whatever parts it had. ETag and content
//     are the same, but who asks for part 2 of an object gets other bytes.
//   - Checksums that a client stored with an object (x-amz-checksum-*). Who asks for
//     them is told none; the ETag is the same.
//   - Uploads that are not complete: the application that began one has to begin anew.
//   - Content that is encrypted with a key of the client's (SSE-C). It is named in
//     [Result].
//   - The keys of objects that are encrypted with one of the server's: the target
//     uses its own.
//   - The class of storage, and the status of a replication between clusters.
//
// A kill under way costs an object in parts all its parts: the next pass begins it
// anew, and the server removes the old upload some day.
//
// # Memory
//
// It does not grow with the number of objects. What is listed and not done takes 8
// MiB on each side, or what the versions of a single object in each of eight buckets take,
// and the order in which a pass does them another 8; a page of 1000 versions is read at a
// time for each side and bucket under way. Content is not kept. Of one object with very many versions
// each takes about 250 bytes on each side, and as much again while both are compared;
// 2 MiB of attributes are kept, and what exceeds that is asked for again, version by
// version. Comparing 100,000 versions of one object took 107 MiB of resident memory in
// all, in a process that does nothing else: more would be too many for the operator.
package replica
