// Package csr is the machine of kubelets' requests for serving certificates. Its things
// are the CertificateSigningRequests on which nobody has decided, by their UIDs. [Judge]
// says which of them may be approved; the others stay as they are, since somebody else
// may want to approve them, and are judged anew when something around them changes.
//
// Who may create such requests can ask for any name. So a request is approved only if
// its kubelet asks for names of its own Node, which no other node and no part of the
// cluster has.
package csr
