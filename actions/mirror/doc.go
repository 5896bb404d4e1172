// Package mirror keeps a copy of the open actions, and of other state on which decisions depend, such as pauses, in the
// cluster, so that an EKCO that starts on another node with an empty journal can continue.
//
// The mirror is one ConfigMap, the index. If one is too small, the actions are in further ConfigMaps, the parts. Parts
// are written before the index, which names them with their hashes, and deleted after it.
//
// The journal stays the authority; the mirror may lag behind it. EKCO reads the mirror at its start, and when another
// EKCO with another journal has written it. [Quiet] decides which of the two continues.
package mirror
