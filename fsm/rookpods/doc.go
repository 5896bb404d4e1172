// Package rookpods is the machine for settings of Rook's pods: the resources of the CSI pods, the placement of a
// filesystem's MDS, and priority classes. The configuration can switch off each of them, and none depends on facts that
// Ceph reports.
package rookpods
