// Package debian reads what Debian's packages say of themselves.
package debian
