// Package csr is the machine for kubelets' requests for serving certificates: the pending
// CertificateSigningRequests, by UID. [Judge] decides which of them EKCO may approve. The others stay pending, since
// another client may approve them, and are judged again when something around them changes.
//
// A client that can create such requests can ask for any name. So EKCO approves a request only if its kubelet asks
// for names of its own Node that no other node and no part of the cluster has.
package csr
