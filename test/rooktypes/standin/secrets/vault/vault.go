// Package vault replaces the real package. It has the constants that Rook's types use. See package rooktypes.
package vault

// These are the methods with which Rook logs in to Vault.
const (
	AuthMethod           = "VAULT_AUTH_METHOD"
	AuthMethodKubernetes = "kubernetes"
)
