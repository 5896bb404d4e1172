// Package rook is EKCO's view of Rook, the operator that runs Ceph on Kubernetes: the narrow interface [API],
// and one implementation with client-go. The subpackage rooksim simulates Rook for crash tests.
//
// It does not use Rook's own Go types, which cannot share a module with current Kubernetes libraries. It reads
// only the fields that EKCO needs from JSON, and keeps all other fields when it writes. The module
// test/rooktypes compares both with Rook's types.
//
// A cluster without Rook is no error, see [Installation]. A Rook that EKCO may not read is an error, because
// there may be OSDs.
package rook
