// Package rook is the machine of Rook's storage: EKCO lets Ceph use the nodes that join, has
// it keep data in more copies as there are hosts for them, and makes its daemons redundant.
package rook
