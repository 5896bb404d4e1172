// Package kotsadm is EKCO's view of kotsadm's database: the StatefulSet default/kotsadm-rqlite and its pods.
// EKCO changes only its number of replicas, and the argument with rqlite's number of members.
package kotsadm
