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
package replica
