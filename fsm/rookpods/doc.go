// Package rookpods is the machine of what Rook gives its pods: the resources of those of
// Ceph's CSI drivers, the placement of a filesystem's MDS, and priority classes. Each has a
// setting of its own, and none needs to know what Ceph says.
package rookpods
