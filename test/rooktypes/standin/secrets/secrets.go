// Package secrets stands in for the real one: it has the one constant of it that
// Rook's types name. See package rooktypes.
package secrets

// TypeVault names the provider.
const TypeVault = "vault"
