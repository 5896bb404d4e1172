// Package api stands in for Vault's: it has the constants of it that Rook's types
// name. See package rooktypes.
package api

// Environment variables of Vault's client.
const (
	EnvVaultCACert     = "VAULT_CACERT"
	EnvVaultClientCert = "VAULT_CLIENT_CERT"
	EnvVaultClientKey  = "VAULT_CLIENT_KEY"
)
