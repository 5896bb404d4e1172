// Package webhook replaces controller-runtime's package. It has the one type that Rook's types use. See package
// rooktypes.
package webhook

import "k8s.io/apimachinery/pkg/runtime"

// Validator is the interface that Rook's types declare to implement.
type Validator interface {
	runtime.Object
	ValidateCreate() error
	ValidateUpdate(old runtime.Object) error
	ValidateDelete() error
}
