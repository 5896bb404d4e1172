// Package rook is EKCO's view of Rook, the operator that runs Ceph on
// Kubernetes: the narrow interface [API], and one implementation over
// client-go. The subpackage rooksim simulates Rook for crash tests.
//
// Rook's own Go types are not used: they cannot share a module with current
// Kubernetes libraries. Objects are read as JSON, just the fields that EKCO
// needs, and what is written back keeps every other field as it was. The module
// test/rooktypes compares both with Rook's types.
//
// Rook that is not there is no error, see [Installation]; Rook that EKCO may not
// see is one, because there may be OSDs.
package rook
