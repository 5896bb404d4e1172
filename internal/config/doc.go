// Package config reads EKCO's configuration. Every key is a flag, an environment variable of the same name in
// upper case, and a key of the configuration file. A flag wins over the environment, the environment over the
// file, and the file over the default. All problems are reported together, each with the key, its value (never
// a secret's), its origin and the expected value.
package config
