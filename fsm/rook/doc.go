// Package rook is the machine of Rook's storage: EKCO lets Ceph use new nodes, raises the number of copies as the
// number of hosts grows, and makes Ceph's daemons redundant.
package rook
