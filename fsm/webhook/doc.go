// Package webhook is the machine for EKCO's admission webhooks: whether API servers call them, and with which
// certificate EKCO serves them.
package webhook
