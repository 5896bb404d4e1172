// Package mirror keeps a copy of the open actions in the cluster, with other state that decisions need, such as pauses.
// With it, an EKCO that starts on another node with an empty journal can continue.
//
// The mirror is one ConfigMap, the index. If the actions do not fit there, they are in further ConfigMaps, the parts,
// which the index names with their hashes. EKCO writes new parts before the index, and deletes old parts after it.
//
// The journal is the authority; the mirror may lag behind it. EKCO reads the mirror at its start, and when an EKCO with
// another journal has written it. [Quiet] decides which of two such EKCOs continues.
package mirror
