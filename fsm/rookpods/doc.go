// Package rookpods is the machine of settings that Rook gives its pods: the resources of the CSI pods, the placement of
// a filesystem's MDS, and priority classes. Each has a setting of its own, and none depends on what Ceph reports.
package rookpods
