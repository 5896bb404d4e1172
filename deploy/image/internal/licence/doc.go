// Package licence recognises the licences of Go modules by their texts.
package licence
