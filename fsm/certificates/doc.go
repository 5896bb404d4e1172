// Package certificates is the machine for certificates. It requests renewals of certificates in Secrets and of control
// planes before they expire. It does not change a customer's own certificates. It warns of the expiry of certificates
// that EKCO does not renew.
package certificates
