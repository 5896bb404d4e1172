// Package client replaces controller-runtime's package. It has the one type that Rook's types use. See package
// rooktypes.
package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is the interface of every Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}
