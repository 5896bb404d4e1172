// Package certificates is the machine of the certificates that EKCO knows: it renews those in
// Secrets before they expire, leaves alone a customer's own, and tells of those that nobody
// renews when they come to their end.
package certificates
