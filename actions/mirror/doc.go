// Package mirror keeps a copy of the open actions, and of what decides besides them, such as pauses, in the
// cluster itself, so that an EKCO that starts elsewhere with an empty journal can go on.
//
// It is one ConfigMap, the index. If there is too much for one, the actions are in further ones, the parts. These
// are written before the index, which names them with their hashes, and are deleted after it.
//
// The journal stays the authority: the mirror follows it, and may lag behind it.
// It is consulted at start, and when another EKCO, with another journal, is found
// to have written it: then the two of them agree on who goes on (see [Quiet]).
package mirror
