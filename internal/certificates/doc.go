// Package certificates reads certificates, keys, kubeconfigs and manifests of static pods
// strictly, says what is wrong with which block of which file, and makes new certificates
// from old ones. It knows no cluster and keeps nothing. Its errors hold nothing of what was
// read but names and types of PEM blocks: what cannot be read may be a key.
package certificates
