// Package licence recognises the licences of Go modules by what their texts say.
package licence
