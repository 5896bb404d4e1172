// Package mirror keeps a copy of the open actions in the cluster itself, so
// that an EKCO that starts elsewhere with an empty journal can finish them.
//
// The journal stays the authority: the mirror follows it, and may lag behind it.
// It is consulted at start, and when another EKCO, with another journal, is found
// to have written it: then the two of them agree on who goes on (see [Quiet]).
package mirror
