// Package csr is the machine for kubelets' requests for serving certificates, the pending CertificateSigningRequests.
// [Judge] decides which of them EKCO may approve. The others stay pending, because another client may approve them.
// EKCO judges all pending requests again when the facts about the cluster change.
//
// A client that can create such a request can ask for any name. So EKCO approves a request only if a kubelet asks for
// names of its own Node, and no other node or part of the cluster has these names.
package csr
