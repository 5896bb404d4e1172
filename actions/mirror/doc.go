// Package mirror keeps a copy of the open actions in the cluster itself, so
// that an EKCO that starts elsewhere with an empty journal can finish them.
//
// The journal stays the authority: the mirror follows it, may lag behind it,
// and is consulted only at start.
package mirror
