// Package client stands in for controller-runtime's: it has the one type of it
// that Rook's types name. See package rooktypes.
package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is what every object of Kubernetes can do.
type Object interface {
	metav1.Object
	runtime.Object
}
