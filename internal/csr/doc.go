// Package csr is the client for kubelets' requests for serving certificates:
// CertificateSigningRequests of one signer. [Parse] reduces a request, whatever
// somebody may have sent, to what is judged; a [Client] lists and watches them, reads
// what is around them (their Nodes, those of others, the identities of the cluster),
// and approves. What may be approved is not said here.
package csr
