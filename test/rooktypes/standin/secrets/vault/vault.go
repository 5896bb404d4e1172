// Package vault stands in for the real one: it has the constants of it that
// Rook's types name. See package rooktypes.
package vault

// How Rook logs in to Vault.
const (
	AuthMethod           = "VAULT_AUTH_METHOD"
	AuthMethodKubernetes = "kubernetes"
)
