// Package secrets reads and renews the certificates that a kURL cluster stores in Secrets, such as the certificates of its
// registry, of its proxy for the admin console, and of Contour and Envoy. It checks which certificates are served, and
// restarts the servers that do not read a new certificate automatically.
package secrets
