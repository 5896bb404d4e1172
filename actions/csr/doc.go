// Package csr approves kubelets' requests for serving certificates. The machine in package fsm judges a request by the
// facts in the journal. This package judges it again by facts that it reads itself: before the step, and right before
// the approval. The API server accepts the approval only if the request has not changed since EKCO read it.
package csr
