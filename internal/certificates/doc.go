// Package certificates reads certificates, keys, kubeconfigs and manifests of static pods. It is strict, and its errors
// name the file and the PEM block. It creates new certificates from old ones. It needs no cluster and keeps no state.
// Its errors quote only names and types of PEM blocks, since content that cannot be read may be a key.
package certificates
