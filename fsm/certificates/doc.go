// Package certificates is the machine for certificates. It requests renewals of those in Secrets and of control
// planes before they expire, ignores a customer's own, and warns before a certificate expires that EKCO does not
// renew.
package certificates
