// Package webhook stands in for controller-runtime's: it has the one type of it
// that Rook's types name. See package rooktypes.
package webhook

import "k8s.io/apimachinery/pkg/runtime"

// Validator is what Rook's types say they implement.
type Validator interface {
	runtime.Object
	ValidateCreate() error
	ValidateUpdate(old runtime.Object) error
	ValidateDelete() error
}
