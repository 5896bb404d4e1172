// Package secrets reads and renews the certificates that a kURL cluster keeps in Secrets: those of its registry, of
// its proxy for the admin console, and of Contour and Envoy. It checks which certificates are served, and restarts
// the servers that need it.
package secrets
