// Package rook reads and changes the objects of Rook, the operator that runs Ceph on Kubernetes. The interface [API]
// has only the calls that EKCO needs. [Client] implements it with client-go. The subpackage rooksim simulates Rook for
// crash tests.
//
// It does not use Rook's own Go types, which cannot share a module with current Kubernetes libraries. It reads
// only the fields that EKCO needs from JSON, and keeps all other fields when it writes. The module
// test/rooktypes compares both with Rook's types.
//
// A cluster without Rook is no error, see [Installation]. It is an error if EKCO may not read Rook's objects, because
// there may be OSDs.
package rook
