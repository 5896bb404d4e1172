// Package config reads EKCO's configuration. Every key is a flag, an
// environment variable of the same name in upper case, and a key of the
// configuration file; a flag wins over the environment, the environment over
// the file, the file over the default. All problems are reported at once, each
// with the key, its value (never a secret's), where it came from and what is
// expected.
package config
