// Package mirror keeps a copy of the open actions in the cluster, with other state that decisions need, such as pauses.
// An EKCO that starts on another node with an empty journal can continue from it.
//
// The mirror is one ConfigMap, the index. If it is too small, the actions are in further ConfigMaps, the parts. EKCO
// writes the parts before the index, which names them with their hashes. It deletes old parts after it has written the
// index.
//
// The journal is the authority; the mirror may lag behind it. EKCO reads the mirror at its start, and when an EKCO with
// another journal has written it. [Quiet] decides which of two such EKCOs continues.
package mirror
