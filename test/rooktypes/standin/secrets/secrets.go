// Package secrets replaces the real package. It has the one constant that Rook's types use. See package rooktypes.
package secrets

// TypeVault names the provider.
const TypeVault = "vault"
