// Package kotsadm is EKCO's view of kotsadm's database: the StatefulSet
// default/kotsadm-rqlite and its pods. EKCO changes its number of replicas, and the
// argument that tells rqlite how many members there are, and nothing else.
package kotsadm
