// Package api replaces the package of Vault's client. It has the constants that Rook's types use. See package
// rooktypes.
package api

// These are environment variables of Vault's client.
const (
	EnvVaultCACert     = "VAULT_CACERT"
	EnvVaultClientCert = "VAULT_CLIENT_CERT"
	EnvVaultClientKey  = "VAULT_CLIENT_KEY"
)
