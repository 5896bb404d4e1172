// Package secrets reads and renews the certificates that a kURL cluster keeps in Secrets: those
// of its registry, of its proxy for the admin console, and of Contour and Envoy. It says what
// of them is served, and restarts what must be restarted to serve another.
package secrets
