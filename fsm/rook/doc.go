// Package rook is the machine for Rook's storage. EKCO adds new nodes to the list of storage nodes, raises the number
// of copies as the number of hosts grows, lowers it after hosts were lost for good, and makes Ceph's daemons redundant.
package rook
